import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { serviceUnavailable } from '../../../../test/support/broken-database.ts';
import { contextOf } from '../../../../test/support/context.ts';
import type { Database, Transaction } from '../../../adapters/database/database.ts';
import type { JobEventsTable } from '../../../adapters/database/tables.ts';
import type { Logger } from '../../../kernel/log.ts';
import { JobFeed } from '../feed.ts';
import type { ClaimedJob } from '../jobs.store.ts';
import { Reports } from './reports.ts';

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

/** Streams of jobs, one of them with a listener, whose commits do this. */
function onDatabase(write: Database['write']) {
  const errors: unknown[] = [];
  const feed = new JobFeed();
  const context = contextOf({
    database: { write } as Partial<Database> as Database,
    clock: { now: () => Date.now(), monotonic: () => Date.now() },
    log: { error: ({ err }: { err: unknown }) => errors.push(err) } as unknown as Logger,
  });
  const reports = new Reports(context, feed);
  const streamOf = (id: string) => reports.open({ id, epoch: 1 } as ClaimedJob);
  const heardStreamOf = (id: string) => {
    feed.subscribe(id, () => {});
    return streamOf(id);
  };
  return { stream: heardStreamOf('a'), streamOf, heardStreamOf, feed, errors };
}

/** Streams of jobs on a database that cannot be used. */
function withoutDatabase() {
  const write = vi.fn(() => Promise.reject(serviceUnavailable()));
  return { ...onDatabase(write), write };
}

/** Streams of jobs, with what each commit records; the first ones fail. */
function recording({ failing = 0 } = {}) {
  const commits: string[][] = [];
  const write = async <T>(unit: (tx: Transaction) => Promise<T>) => {
    const commit: string[] = [];
    await Promise.resolve();
    const result = await unit({
      dialect: 'sqlite',
      async each(_statement: unknown, rows: readonly unknown[]) {
        for (const { job_id, n, data } of rows as readonly JobEventsTable[])
          commit.push(`${job_id}.${n} ${JSON.parse(data).text}`);
      },
      afterCommit: () => {},
      ifUncertain: () => {},
    } as Partial<Transaction> as Transaction);
    if (commits.push(commit) <= failing) throw serviceUnavailable();
    return result;
  };
  return { ...onDatabase(write), commits };
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
  const { stream, heardStreamOf, write } = withoutDatabase();

  stream.add(text('one'));
  await vi.advanceTimersByTimeAsync(0);
  expect(write).toHaveBeenCalledTimes(1);
  heardStreamOf('b').add(text('two'));
  heardStreamOf('c').add(text('three'));
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

test('the text of a job without listeners is recorded a second later, with what others have waited for half of one', async () => {
  const { streamOf, commits } = recording();
  const [first, second, third] = [streamOf('b'), streamOf('c'), streamOf('d')];

  first.add(text('one'));
  await vi.advanceTimersByTimeAsync(400);
  second.add(text('two'));
  await vi.advanceTimersByTimeAsync(300);
  third.add(text('three'));
  await vi.advanceTimersByTimeAsync(299);
  expect(commits).toEqual([]);
  await vi.advanceTimersByTimeAsync(51);
  expect(commits).toEqual([['b.1 one', 'c.1 two']]);
  await vi.advanceTimersByTimeAsync(700);

  expect(commits).toEqual([['b.1 one', 'c.1 two'], ['d.1 three']]);
  expect(vi.getTimerCount()).toBe(0);
});

test('a listener that comes later gets the text within 50 ms', async () => {
  const { streamOf, feed, commits } = recording();

  streamOf('b').add(text('one'));
  await vi.advanceTimersByTimeAsync(500);
  expect(commits).toEqual([]);
  feed.subscribe('b', () => {});
  await vi.advanceTimersByTimeAsync(50);

  expect(commits).toEqual([['b.1 one']]);
});

test('deltas of one call that wait together are one event', async () => {
  const { streamOf, commits } = recording();
  const stream = streamOf('b');

  for (const words of ['one', ' two', ' three']) {
    stream.add(text(words));
    await vi.advanceTimersByTimeAsync(100);
  }
  stream.add({ type: 'token', data: { step: 2, text: 'four' } });
  stream.add({ type: 'token', data: { step: 2, text: 'x'.repeat(4_093) } });
  await vi.advanceTimersByTimeAsync(1_000);
  stream.add({ type: 'token', data: { step: 2, text: 'five' } });
  await vi.advanceTimersByTimeAsync(1_000);

  expect(commits).toEqual([
    ['b.1 one two three', 'b.2 four', `b.3 ${'x'.repeat(4_093)}`],
    ['b.4 five'],
  ]);
});

test('text that was tried to be recorded is not changed any more', async () => {
  const { stream, commits } = recording({ failing: 1 });

  stream.add(text('one'));
  await vi.advanceTimersByTimeAsync(0);
  stream.add(text(' two'));
  await vi.advanceTimersByTimeAsync(500);

  expect(commits).toEqual([['a.1 one'], ['a.1 one', 'a.2  two']]);
});
