import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { PooledChild } from './child-starts.ts';
import type { Executor } from './executor.ts';
import type { PoolSettings } from './pool-options.ts';
import { ProcessPool } from './process-pool.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test('a child that is silent since its check counts as busy, though the timer ends early', async () => {
  const pool = new ProcessPool({ size: 2 } as PoolSettings, () => {});
  pool.isGrown = true;
  // No child is started.
  pool.isStopped = true;
  const begin = Date.now();
  // The clock is behind the timer by a part of a millisecond; a simulated immediate takes a whole one.
  const silentMs = () => Date.now() - begin - 1.5;
  const executor = { watch: () => true, silentMs } as unknown as Executor;
  pool.children.add({ role: 'shared', executor } as PooledChild);

  pool.watch(false);
  await vi.advanceTimersByTimeAsync(60);

  expect(pool.shared).toBe(2);
});
