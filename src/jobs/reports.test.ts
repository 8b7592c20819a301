import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { serviceUnavailable } from '../../test/support/broken-database.ts';
import type { Database } from '../database/database.ts';
import { createJobFeed } from './feed.ts';
import type { ClaimedJob } from './jobs.store.ts';
import { createReports } from './reports.ts';

beforeEach(() => {
  vi.useFakeTimers();
  // Vitest fakes the timers with callbacks alone.
  vi.spyOn(timers, 'setTimeout').mockImplementation(
    (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
  );
  syncBuiltinESMExports();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  syncBuiltinESMExports();
});

const log = (message: string) => ({ type: 'log', data: { message } }) as const;

/** The stream of a job on a database that cannot be used. */
function withoutDatabase() {
  const errors: unknown[] = [];
  const write = vi.fn(() => Promise.reject(serviceUnavailable()));
  const reports = createReports({
    database: { write } as Partial<Database> as Database,
    feed: createJobFeed(),
    clock: { now: () => 0, monotonic: () => 0 },
    onError: (error) => void errors.push(error),
  });
  return { stream: reports({ id: 'a', epoch: 1 } as ClaimedJob), write, errors };
}

test('reports wait 30 s in all for the database, also those that are made meanwhile', async () => {
  const { stream, write, errors } = withoutDatabase();
  let isFlushed = false;

  stream.add(log('one'));
  void stream.flushed().then(() => {
    isFlushed = true;
  });
  await vi.advanceTimersByTimeAsync(20_000);
  stream.add(log('two'));
  await vi.advanceTimersByTimeAsync(9_000);
  expect({ isFlushed, errors }).toEqual({ isFlushed: false, errors: [] });
  stream.add(log('three'));
  await vi.advanceTimersByTimeAsync(1_000);

  expect(isFlushed).toBe(true);
  expect(write).toHaveBeenCalledTimes(60);
  expect(errors).toEqual([serviceUnavailable()]);
});
