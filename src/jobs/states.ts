/**
 * The life of a job as data and pure decisions: which state may follow which, and what a run's
 * ending makes of its job. No I/O; time and chance are passed in.
 */
import type { JobStatus } from '../database/tables.ts';
import { type Backoff, delayAfter } from '../kernel/backoff.ts';
import type { RunErrorCode } from '../kernel/errors.ts';

/** Which states may follow each state. A final one has none. */
export const jobTransitions: Record<JobStatus, readonly JobStatus[]> = {
  queued: ['active', 'cancelled'],
  active: ['queued', 'completed', 'failed', 'cancelled'],
  completed: [],
  failed: [],
  cancelled: [],
};

export function isFinal(status: JobStatus): boolean {
  return jobTransitions[status].length === 0;
}

/** Why a job failed or was cancelled, as the API shows it. */
export interface JobError {
  readonly code: RunErrorCode;
  readonly message: string;
}

/** How an attempt ended, seen from the job. */
export type Ending =
  | { readonly kind: 'completed'; readonly output: string }
  | {
      readonly kind: 'failed';
      readonly error: JobError;
      readonly retryable: boolean;
      /** Milliseconds that whoever failed it wants to be left alone for. */
      readonly retryAfterMs?: number;
    }
  | { readonly kind: 'cancelled' }
  /**
   * Given back untouched: the attempt is not charged. `death` when an executor died around it;
   * `afterMs` when nobody is to take it up at once.
   */
  | { readonly kind: 'returned'; readonly death: boolean; readonly afterMs?: number };

/** What becomes of the job. */
export type Verdict =
  | { readonly status: 'completed'; readonly output: string }
  | { readonly status: 'failed' | 'cancelled'; readonly error: JobError }
  | {
      readonly status: 'queued';
      readonly runAt: number;
      readonly error: JobError | null;
      /** Attempts to give back. */
      readonly refund: 0 | 1;
      readonly deaths: 0 | 1;
    };

export const cancelledError: JobError = { code: 'cancelled', message: 'The job was cancelled' };

/** Decides. A failed attempt is tried again while attempts are left, unless it said it is final. */
export function verdictOn(
  ending: Ending,
  job: { attempt: number; max_attempts: number },
  backoff: Backoff,
  now: number,
  random = Math.random(),
): Verdict {
  switch (ending.kind) {
    case 'completed':
      return { status: 'completed', output: ending.output };
    case 'cancelled':
      return { status: 'cancelled', error: cancelledError };
    case 'returned':
      return {
        status: 'queued',
        runAt: now + (ending.afterMs ?? 0),
        error: null,
        refund: 1,
        deaths: ending.death ? 1 : 0,
      };
    case 'failed':
      if (!ending.retryable || job.attempt >= job.max_attempts) {
        return { status: 'failed', error: ending.error };
      }
      return {
        status: 'queued',
        runAt: now + delayBefore(ending.retryAfterMs, backoff, job.attempt, random),
        error: ending.error,
        refund: 0,
        deaths: 0,
      };
  }
}

/** Whoever asks to be left alone is, for as long as the longest backoff. */
function delayBefore(
  retryAfterMs: number | undefined,
  backoff: Backoff,
  attempt: number,
  random: number,
): number {
  const asked = Math.min(retryAfterMs ?? 0, backoff.maxMs);
  return Math.max(asked, delayAfter(backoff, attempt, random));
}
