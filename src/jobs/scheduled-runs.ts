/**
 * What the end of a run means to the schedule that started it. Jobs know no schedules; they tell
 * them, inside the transaction that ends the run, so that both are true or neither.
 */
import type { Handle, Transaction } from '../database/database.ts';
import type { ClaimedJob } from './jobs.store.ts';
import type { JobError } from './states.ts';

/** A job of trigger type `scheduled` that has ended. */
export interface EndedRun {
  readonly job: Pick<
    ClaimedJob,
    | 'id'
    | 'organization_id'
    | 'agent_id'
    | 'conversation_id'
    | 'skill_category'
    | 'skill_name'
    | 'skill_version'
  >;
  readonly status: 'completed' | 'failed' | 'cancelled';
  /** Null when it completed. */
  readonly error: JobError | null;
  /** Of its last attempt. */
  readonly durationMs: number;
}

export interface ScheduledRuns {
  /** The scheduled job that a job is a run of; undefined when that run is not kept any more. */
  scheduledJobOf(db: Handle, jobId: string): Promise<string | undefined>;
  /**
   * Of these jobs, those that may not be tried again, because their schedule was deleted or
   * disabled. What it answers stays true while the jobs are held.
   */
  unwanted(tx: Transaction, jobIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Records what became of runs, whose jobs are held. To be done last in a transaction. */
  ended(tx: Transaction, runs: readonly EndedRun[], now: number): Promise<void>;
}
