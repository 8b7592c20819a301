/**
 * Reports of runs: recorded in the job's event stream in order, and published once they are
 * recorded. Grouped across runs, so that skills with many reports cost few commits.
 */

import type { ThinkingReport } from '../agents/generation.ts';
import { createBatch } from '../database/batch.ts';
import type { Database } from '../database/database.ts';
import { type Clock, timestamp } from '../kernel/clock.ts';
import { retryWhileUnavailable } from '../kernel/retry-while-unavailable.ts';
import type { JobEvent, JobFeed } from './feed.ts';
import { insertJobEvents } from './job-events.store.ts';
import { type ClaimedJob, setJobProgress } from './jobs.store.ts';

/** Events that one attempt may add to its stream; later ones are dropped. */
const eventsPerAttemptMax = 5_000;

/** Of these, deltas of a model's text, which is also recorded whole at its end. */
const piecesPerAttemptMax = 3_000;

/** Between two tries to record while the database cannot be used, and how many. */
const retryMs = 500;
const triesMax = 60;
const mayRetry = (tries: number) => tries < triesMax;

/** One report of a run. */
export type Report =
  | ThinkingReport
  | { readonly type: 'log'; readonly data: Readonly<Record<string, unknown>> }
  | { readonly type: 'message'; readonly data: Readonly<Record<string, unknown>> }
  | { readonly type: 'progress'; readonly data: { fraction: number; note: string | null } };

/** The stream of one attempt. */
export interface ReportStream {
  add(report: Report): void;
  /** Resolves when every report so far is recorded, or has failed to be. */
  flushed(): Promise<void>;
}

interface Recorded {
  readonly job: ClaimedJob;
  readonly event: JobEvent;
}

export function createReports(parts: {
  database: Database;
  feed: JobFeed;
  clock: Clock;
  onError: (error: unknown) => void;
}): (job: ClaimedJob) => ReportStream {
  const { database, feed, clock, onError } = parts;

  const record = createBatch<Recorded, void>(database, async (tx, all) => {
    await insertJobEvents(
      tx,
      all.map(({ job, event }) => ({
        job_id: job.id,
        epoch: event.epoch,
        n: event.n,
        type: event.type,
        data: JSON.stringify(event.data),
        created_at: clock.now(),
      })),
    );
    await setJobProgress(tx, lastProgress(all));
    tx.afterCommit(() => {
      for (const { job, event } of all) feed.publish(job.id, event);
    });
    return all.map(() => undefined);
  });

  const recordOne = (one: Recorded) => retryWhileUnavailable(() => record(one), retryMs, mayRetry);

  return (job) => {
    let n = 0;
    let pieces = 0;
    let waiting: JobEvent[] = [];
    let recording: Promise<void> | null = null;

    /** Records the waiting reports in order; waits while the database is away. */
    async function recordAll(): Promise<void> {
      // Reports made in one synchronous piece of code are recorded together.
      await Promise.resolve();
      while (waiting.length > 0) {
        const events = waiting;
        waiting = [];
        const results = await Promise.allSettled(events.map((event) => recordOne({ job, event })));
        const failed = results.find(({ status }) => status === 'rejected');
        if (failed?.status === 'rejected') onError(failed.reason);
      }
      recording = null;
    }

    return {
      add({ type, data }) {
        if (n >= eventsPerAttemptMax) return;
        if (type === 'token' && ++pieces > piecesPerAttemptMax) return;
        const event = {
          epoch: job.epoch,
          n: ++n,
          type,
          data: { ...data, at: timestamp(clock.now()) },
        };
        waiting.push(event);
        recording ??= recordAll();
      },
      flushed: () => recording ?? Promise.resolve(),
    };
  };
}

/** The last reported progress of each job. */
function lastProgress(all: readonly Recorded[]) {
  const rows = new Map<string, { id: string; epoch: number; progress: string }>();
  for (const { job, event } of all) {
    if (event.type !== 'progress') continue;
    const { fraction, note } = event.data;
    rows.set(job.id, {
      id: job.id,
      epoch: job.epoch,
      progress: JSON.stringify({ fraction, note }),
    });
  }
  return [...rows.values()];
}
