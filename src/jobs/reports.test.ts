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

const text = (words: string) => ({ type: 'token', data: { step: 1, text: words } }) as const;

/** Streams of jobs on a database that cannot be used. */
function withoutDatabase() {
  const errors: unknown[] = [];
  const write = vi.fn(() => Promise.reject(serviceUnavailable()));
  const reports = createReports({
    database: { write } as Partial<Database> as Database,
    feed: createJobFeed(),
    clock: { now: () => Date.now(), monotonic: () => Date.now() },
    onError: (error) => void errors.push(error),
  });
  const streamOf = (id: string) => reports({ id, epoch: 1 } as ClaimedJob);
  return { stream: streamOf('a'), streamOf, write, errors };
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

test('texts of all runs are recorded together, every 50 ms at most, the first at once', async () => {
  const { stream, streamOf, write } = withoutDatabase();

  stream.add(text('one'));
  await vi.advanceTimersByTimeAsync(0);
  expect(write).toHaveBeenCalledTimes(1);
  streamOf('b').add(text('two'));
  streamOf('c').add(text('three'));
  await vi.advanceTimersByTimeAsync(49);
  expect(write).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(1);

  expect(write).toHaveBeenCalledTimes(2);
});

test('a text is not held when another report follows or the run ends', async () => {
  const { stream, streamOf, write } = withoutDatabase();
  const [logging, ending] = [streamOf('b'), streamOf('c')];
  stream.add(text('one'));
  await vi.advanceTimersByTimeAsync(0);

  logging.add(text('two'));
  await vi.advanceTimersByTimeAsync(0);
  logging.add(log('three'));
  await vi.advanceTimersByTimeAsync(0);
  expect(write).toHaveBeenCalledTimes(2);
  ending.add(text('four'));
  await vi.advanceTimersByTimeAsync(0);
  void ending.flushed();
  await vi.advanceTimersByTimeAsync(0);

  expect(write).toHaveBeenCalledTimes(3);
});
