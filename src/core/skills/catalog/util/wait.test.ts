import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { allows, trySkill } from '../../../../../test/support/try-skill.ts';
import wait from './wait.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  // First, because it puts back the timers that were there when they were spied on: the fake ones.
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test('a wait of five minutes is allowed, takes that long and says how far it is', async () => {
  const progress = vi.fn();
  let ended = false;

  const waiting = trySkill(wait, { ms: 300_000 }, { progress }).finally(() => {
    ended = true;
  });
  await vi.advanceTimersByTimeAsync(299_999);
  expect(ended).toBe(false);
  await vi.advanceTimersByTimeAsync(1);

  expect(await waiting).toEqual({ waited_ms: 300_000 });
  expect(progress).toHaveBeenCalledTimes(60);
  expect(progress).toHaveBeenNthCalledWith(1, 1 / 60, '5 of 300 s');
  expect(progress).toHaveBeenLastCalledWith(1, '300 of 300 s');
  expect(wait.timeoutMs).toBeGreaterThan(300_000);
});

test('a short wait reports nothing', async () => {
  const progress = vi.fn();

  const waiting = trySkill(wait, { ms: 5_000 }, { progress });
  await vi.advanceTimersByTimeAsync(5_000);

  expect(await waiting).toEqual({ waited_ms: 5_000 });
  expect(progress).not.toHaveBeenCalled();
});

test('no wait at all is over at once', async () => {
  expect(await trySkill(wait, { ms: 0 })).toEqual({ waited_ms: 0 });
});

test('a cancelled wait ends at once and leaves no timer', async () => {
  const run = new AbortController();
  const reason = new Error('cancelled');
  // Of all timers, because other code of this process has some: what earlier tests have left goes on.
  const set = vi.spyOn(globalThis, 'setTimeout');
  const cleared = vi.spyOn(globalThis, 'clearTimeout');

  const waiting = trySkill(wait, { ms: 300_000 }, { signal: run.signal });
  await vi.advanceTimersByTimeAsync(7_000);
  const ofWait = set.mock.results.filter((_timer, call) => set.mock.calls[call]?.[1] === 5_000);
  run.abort(reason);

  await expect(waiting).rejects.toBe(reason);
  expect(ofWait).toHaveLength(2);
  expect(cleared).toHaveBeenCalledWith(ofWait[1]?.value);
  await expect(trySkill(wait, { ms: 1 }, { signal: run.signal })).rejects.toBe(reason);
});

test.each([-1, 300_001, 1.5, '5', null])('%j is no wait', (ms) => {
  expect(allows(wait.parameters, { ms })).toBe(false);
});
