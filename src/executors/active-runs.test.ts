/** Deadlines in a child that the test plays: who is charged for time that passes, and who is not. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { request, silentHandlers } from '../../test/fixtures/skills/driver.ts';
import { systemClock } from '../kernel/clock.ts';
import type { ActiveRun } from './active-run.ts';
import { type ActiveRuns, createActiveRuns } from './active-runs.ts';
import { createHeartbeat } from './heartbeat.ts';
import type { RunOutcome } from './run.ts';

const graceMs = 150;
const done: RunOutcome = { kind: 'completed', output: '1' };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A child that answers when the test lets it. */
function playedChild(more: { hasDeadlines?: boolean } = {}) {
  const clock = { ...systemClock, monotonic: () => performance.now(), now: () => Date.now() };
  const heartbeat = createHeartbeat(clock.monotonic);
  const said: unknown[][] = [];
  const onOverdue = vi.fn();
  let gathered = 0;
  let sent = 0;
  let answered = 0;
  const flush = (): void => {
    if (gathered > 0) sent = heartbeat.next();
    gathered = 0;
  };
  const activeRuns: ActiveRuns = createActiveRuns({
    channel: {
      push(message) {
        said.push(JSON.parse(message) as unknown[]);
        gathered += 1;
      },
      flushAndPing() {
        flush();
        sent = heartbeat.next();
      },
    },
    heartbeat,
    clock,
    graceMs,
    hasDeadlines: true,
    onOverdue,
    ...more,
  });
  const outcomes: RunOutcome[] = [];
  return {
    activeRuns,
    outcomes,
    onOverdue,
    /** Sends a run to the child. */
    start(timeoutMs: number): ActiveRun {
      const settle = (outcome: RunOutcome) => void outcomes.push(outcome);
      const accepted = {
        request: request('a/b', {}, { timeoutMs }),
        handlers: silentHandlers,
        settle,
      };
      const run = activeRuns.start(accepted);
      flush();
      return run;
    },
    /** The child answers all that it was sent. */
    answer(): void {
      while (answered < sent) heartbeat.answer(++answered);
      activeRuns.onPong();
    },
    /** Whether it was told to stop the run. */
    wasAborted: ({ id }: ActiveRun) => said.some(([kind, run]) => kind === 'abort' && run === id),
  };
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe('a deadline', () => {
  test('is put off for a run that would have ended but for its neighbour', async () => {
    const child = playedChild();
    const waits = child.start(150);
    child.start(20_000);
    child.answer();
    // The neighbour computes from 10 to 400.
    await pass(400);
    child.answer();
    expect(child.wasAborted(waits)).toBe(false);
    await pass(140);
    child.activeRuns.finish(waits, done);
    expect(child.outcomes).toEqual([done]);
  });

  test('is put off by no more than the time of the run itself', async () => {
    const child = playedChild();
    const waits = child.start(150);
    child.start(20_000);
    child.answer();
    await pass(400);
    child.answer();
    await pass(151);
    child.answer();
    expect(child.wasAborted(waits)).toBe(true);
  });

  test('does not begin before the run does', async () => {
    const child = playedChild();
    child.start(20_000);
    child.answer();
    await pass(10);
    const late = child.start(100);
    await pass(390);
    child.answer();
    await pass(99);
    expect(child.wasAborted(late)).toBe(false);
    child.activeRuns.finish(late, done);
    expect(child.outcomes).toEqual([done]);
  });

  test('is not put off for a run that is beside others and is the slow one', async () => {
    const child = playedChild();
    const slow = child.start(100);
    child.start(20_000);
    child.answer();
    await pass(101);
    child.answer();
    expect(child.wasAborted(slow)).toBe(true);
  });

  test('holds for a run that computed past it, all alone', async () => {
    const child = playedChild();
    const busy = child.start(30);
    child.answer();
    await pass(100);
    child.activeRuns.finish(busy, done);
    expect(child.outcomes).toEqual([{ kind: 'timeout', message: 'run timed out after 30 ms' }]);
  });

  test('leaves the grace to end in, from when the child was told', async () => {
    const child = playedChild();
    const stubborn = child.start(30);
    child.answer();
    await pass(31);
    child.answer();
    await pass(graceMs - 5);
    expect(child.onOverdue).not.toHaveBeenCalled();
    await pass(10);
    expect(child.onOverdue).toHaveBeenCalledExactlyOnceWith(stubborn);
  });

  test('does not come for a run that may be stopped in a debugger', async () => {
    const child = playedChild({ hasDeadlines: false });
    const paused = child.start(30);
    child.answer();
    await pass(3_600_000);
    expect(child.wasAborted(paused)).toBe(false);
    child.activeRuns.finish(paused, done);
    expect(child.outcomes).toEqual([done]);
  });
});
