/**
 * The port through which jobs report the end of a scheduled run to its schedule, inside the
 * transaction that ends the run. Jobs do not import schedules.
 */
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { ReportedJob } from '../events/events.ts';
import type { JobError } from './states.ts';

/** A job of trigger type `scheduled` that has ended. */
export interface EndedRun {
  readonly job: ReportedJob;
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** Null when it completed. */
  readonly error: JobError | null;
  /** Milliseconds of its last attempt. */
  readonly durationMs: number;
}

export interface ScheduledRuns {
  /** The scheduled job that started a job; undefined when the row of that run has been deleted. */
  scheduledJobOf(db: Handle, jobId: string): Promise<string | undefined>;
  /**
   * The jobs among these that must not be tried again, because their schedule was deleted or
   * disabled. The result holds while the jobs are locked.
   */
  unwanted(tx: Transaction, jobIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Records the ends of runs whose jobs are locked. To be called last in a transaction. */
  ended(tx: Transaction, runs: readonly EndedRun[], now: number): Promise<void>;
}
