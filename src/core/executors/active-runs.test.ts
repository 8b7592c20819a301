/** Deadlines in a simulated child: which run is charged for the time that passes. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { request, silentHandlers } from '../../../test/fixtures/skills/driver.ts';
import { systemClock } from '../../kernel/clock.ts';
import type { ActiveRun } from './active-run.ts';
import { ActiveRuns } from './active-runs.ts';
import { Channel } from './channel.ts';
import { Heartbeat } from './heartbeat.ts';
import type { BegunRun } from './now-running.ts';
import type { RunOutcome } from './run.ts';

const graceMs = 150;
const done: RunOutcome = { kind: 'completed', output: '1' };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A simulated child that answers pings when the test says so. */
function simulatedChild({ hasDeadlines = true } = {}) {
  const clock = { ...systemClock, monotonic: () => performance.now(), now: () => Date.now() };
  const heartbeat = new Heartbeat(clock.monotonic);
  const messages: unknown[][] = [];
  const write = (line: string) => {
    messages.push(...(JSON.parse(line) as unknown[][]).filter(([kind]) => kind !== 'ping'));
  };
  const channel = new Channel(write, heartbeat);
  const onOverdue = vi.fn();
  let answered = 0;
  let begun: BegunRun | undefined;
  const limits = { graceMs, hasDeadlines };
  const child = { channel, heartbeat, begun: () => begun };
  const activeRuns = new ActiveRuns(child, clock, limits, onOverdue);
  const outcomes: RunOutcome[] = [];
  return {
    activeRuns,
    outcomes,
    onOverdue,
    /** The messages that it was sent. */
    messages() {
      channel.flush();
      return messages;
    },
    /** Sends a run to the child. */
    start(timeoutMs: number): ActiveRun {
      const accepted = {
        request: request('a/b', {}, { timeoutMs }),
        handlers: silentHandlers,
        settle: (outcome: RunOutcome) => void outcomes.push(outcome),
      };
      const run = activeRuns.start(accepted);
      channel.flush();
      return run;
    },
    /** The child answers all pings that it was sent, and one more. */
    answer(): void {
      const last = channel.ping();
      while (answered < last) heartbeat.answer(++answered);
      activeRuns.onPong();
    },
    /** The first code of the run does not give control back. */
    begin(run: ActiveRun): void {
      begun = { id: run.id, isBeginning: true };
    },
    /** The child is sent a ping. */
    ask(): void {
      channel.ping();
    },
    suspect: (run: ActiveRun) => activeRuns.suspects([run])[0],
    hasOutlived: (run: ActiveRun) => activeRuns.suspects([run])[0]?.hasOutlived,
    /** Whether it was told to stop the run. */
    wasAborted: ({ id }: ActiveRun) =>
      messages.some(([kind, run]) => kind === 'abort' && run === id),
  };
}

const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe('a request to suspend', () => {
  test('says how many questions of the run have arrived', () => {
    const child = simulatedChild();
    const run = child.start(1_000);
    run.asked = 3;

    child.activeRuns.suspend(run);

    expect(child.messages().at(-1)).toEqual(['suspend', run.id, 3]);
  });

  test('ends the deadline when the child obeys', async () => {
    const child = simulatedChild();
    const run = child.start(100);
    child.answer();
    child.activeRuns.suspend(run);
    child.activeRuns.finish(run, { kind: 'waiting' });
    await pass(3_600_000);

    expect(child.outcomes).toEqual([{ kind: 'waiting' }]);
    expect(child.wasAborted(run)).toBe(false);
  });

  test('is not made after a request to stop, and a run that waited before it got that waits', async () => {
    const child = simulatedChild();
    const run = child.start(100);
    child.answer();
    child.activeRuns.suspend(run);
    await pass(150);
    expect(child.wasAborted(run)).toBe(true);

    const { length } = child.messages();
    child.activeRuns.suspend(run);
    expect(child.messages().length).toBe(length);

    child.activeRuns.finish(run, { kind: 'waiting' });
    expect(child.outcomes).toEqual([{ kind: 'waiting' }]);
  });
});

describe('a run has outlived another', () => {
  test('that ended beside it, or just before it', () => {
    const child = simulatedChild();
    const [long, short] = [child.start(1_000), child.start(1_000)];
    expect(child.hasOutlived(long)).toBe(false);

    child.activeRuns.finish(short, done);

    expect(child.hasOutlived(long)).toBe(true);
    expect(child.hasOutlived(child.start(1_000))).toBe(true);
  });

  test('but not one that ended before the child was asked once more', () => {
    const child = simulatedChild();
    child.activeRuns.finish(child.start(1_000), done);
    child.ask();

    expect(child.hasOutlived(child.start(1_000))).toBe(false);
  });
});

describe('the code of a run', () => {
  test('has not begun before an idle child has read it, and has then', () => {
    const child = simulatedChild();
    child.answer();
    const only = child.start(1_000);
    expect(child.suspect(only)).toMatchObject({ mayHaveBegun: false, hasBegun: false });

    child.answer();
    expect(child.suspect(only)).toMatchObject({ mayHaveBegun: true, hasBegun: true });
  });

  test('may have begun beside others, until a later ping shows that it has', () => {
    const child = simulatedChild();
    child.start(1_000);
    child.answer();
    const second = child.start(1_000);
    expect(child.suspect(second)).toMatchObject({ mayHaveBegun: true, hasBegun: false });

    child.answer();
    expect(child.suspect(second)).toMatchObject({ mayHaveBegun: true, hasBegun: true });
  });

  test('of a run that follows another at once in an idle child may meet what that one has left', () => {
    const child = simulatedChild();
    child.activeRuns.finish(child.start(1_000), done);
    child.answer();
    child.activeRuns.finish(child.start(1_000), done);

    expect(child.hasOutlived(child.start(1_000))).toBe(true);
  });
});

describe('a deadline', () => {
  test('is extended for a run that another run blocked', async () => {
    const child = simulatedChild();
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

  test('is extended by at most the timeout of the run', async () => {
    const child = simulatedChild();
    const waits = child.start(150);
    child.start(20_000);
    child.answer();
    await pass(400);
    child.answer();
    await pass(151);
    child.answer();
    expect(child.wasAborted(waits)).toBe(true);
  });

  test('does not count the time before the child starts the run', async () => {
    const child = simulatedChild();
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

  test('is extended whole for a run that a neighbour has kept from its beginning', async () => {
    const child = simulatedChild();
    child.start(20_000);
    child.answer();
    const late = child.start(100);
    // The child has answered until now; the neighbour blocks it for 20 ms.
    await pass(120);
    child.answer();
    await pass(99);
    expect(child.wasAborted(late)).toBe(false);
    await pass(2);
    child.answer();
    expect(child.wasAborted(late)).toBe(true);
  });

  test('is not extended for a slow run whose child answers', async () => {
    const child = simulatedChild();
    const slow = child.start(100);
    child.start(20_000);
    child.answer();
    await pass(101);
    child.answer();
    expect(child.wasAborted(slow)).toBe(true);
  });

  test.each(['answer', 'begin'] as const)(
    'times out the only run when it blocks the child past its deadline: %s',
    async (how) => {
      const child = simulatedChild();
      const busy = child.start(30);
      child[how](busy);
      await pass(100);
      child.activeRuns.finish(busy, done);
      expect(child.outcomes).toEqual([{ kind: 'timeout', message: 'run timed out after 30 ms' }]);
    },
  );

  test('starts the grace period when the child has read the stop request', async () => {
    const child = simulatedChild();
    const stubborn = child.start(30);
    child.answer();
    await pass(31);
    child.answer();
    await pass(graceMs - 5);
    expect(child.onOverdue).not.toHaveBeenCalled();
    await pass(10);
    expect(child.onOverdue).toHaveBeenCalledExactlyOnceWith(stubborn);
  });

  test('does not apply while a debugger may pause the run', async () => {
    const child = simulatedChild({ hasDeadlines: false });
    const paused = child.start(30);
    child.answer();
    await pass(3_600_000);
    expect(child.wasAborted(paused)).toBe(false);
    child.activeRuns.finish(paused, done);
    expect(child.outcomes).toEqual([done]);
  });
});
