/**
 * The runs of schedules, as far as their jobs change them: a run ends in the transaction that ends its job, with its events
 * and the last run of its schedule. If the schedule was deleted meanwhile, only the events are recorded.
 */
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { timestamp } from '../../kernel/clock.ts';
import type { JobError } from '../context/run-observer.ts';
import { envelopeOf, type NewEvent, type ReportedJob, runData } from '../events/events.ts';
import { appendEvents } from '../events/outbox.ts';
import {
  endLastRuns,
  endRunsOfJobs,
  findRunOfJob,
  listRunsWithoutRetry,
} from './scheduled-runs.store.ts';

/** A job of trigger type `scheduled` that has ended. */
export interface EndedRun {
  readonly job: ReportedJob;
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** Null when it completed. */
  readonly error: JobError | null;
  /** Milliseconds of its last attempt. */
  readonly durationMs: number;
}

/** The scheduled job that started a job; undefined when the row of that run has been deleted. */
export async function findScheduledJobOf(db: Handle, jobId: string): Promise<string | undefined> {
  return (await findRunOfJob(db, { job_id: jobId }))?.scheduled_job_id;
}

/**
 * The jobs among these that must not be tried again, because their schedule was deleted or disabled. The result holds while
 * the jobs are locked.
 */
export async function findRunsWithoutRetry(
  tx: Transaction,
  jobIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const runs = await listRunsWithoutRetry(tx, { ids: jobIds });
  return new Set(runs.flatMap(({ job_id }) => job_id ?? []));
}

/** Records the ends of runs whose jobs are locked. To be called last in a transaction. */
export async function endScheduledRuns(
  tx: Transaction,
  ended: readonly EndedRun[],
  now: number,
): Promise<void> {
  if (ended.length === 0) return;
  const runs = await endRunsOfJobs(tx, { ids: ended.map(({ job }) => job.id) });
  const byJob = new Map(runs.map((run) => [run.job_id, run]));
  const known = ended.flatMap((end) => {
    const run = byJob.get(end.job.id);
    return run === undefined ? [] : [{ end, run }];
  });
  await appendEvents(
    tx,
    known.flatMap(({ end, run }) => eventsOf(end, run)),
    now,
  );
  await endLastRuns(
    tx,
    known.map(({ end, run }) => ({
      scheduled_job_id: run.scheduled_job_id,
      job_id: end.job.id,
      status: end.status === 'completed' ? 'completed' : 'failed',
    })),
  );
}

/** The events of an ended run; none for a cancelled run, which neither completed nor failed. */
function eventsOf(
  { job, status, error, durationMs }: EndedRun,
  run: { scheduled_job_id: string; scheduled_for: number },
): NewEvent[] {
  if (status === 'cancelled') return [];
  const envelope = envelopeOf(job);
  const data = {
    scheduled_job_id: run.scheduled_job_id,
    ...runData(job),
    scheduled_for: timestamp(run.scheduled_for),
  };
  if (error === null) {
    const completed = { ...data, duration_ms: durationMs };
    return [{ ...envelope, type: 'scheduled_job.completed', data: completed }];
  }
  return [{ ...envelope, type: 'scheduled_job.failed', data: { ...data, error } }];
}
