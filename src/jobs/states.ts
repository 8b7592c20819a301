/**
 * The state machine of a job, pure: which state may follow which, and which one follows the end of
 * an attempt. Time and randomness are passed in.
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
      /** Milliseconds for which the server that refused asks for no further request. */
      readonly retryAfterMs?: number;
    }
  | { readonly kind: 'cancelled' }
  /**
   * Returned to the queue: the attempt is not charged. `unattributedDeath` when its executor died and
   * another run may have caused it; `afterMs` when the job must not be claimed at once.
   */
  | { readonly kind: 'returned'; readonly unattributedDeath: boolean; readonly afterMs?: number };

/** What the end of an attempt makes of the job. */
export type Transition =
  | { readonly status: 'completed'; readonly output: string }
  | { readonly status: 'failed' | 'cancelled'; readonly error: JobError }
  | {
      readonly status: 'queued';
      readonly runAt: number;
      readonly error: JobError | null;
      /** Attempts that are not charged. */
      readonly refund: 0 | 1;
      readonly unattributedDeaths: 0 | 1;
    };

export const cancelledError: JobError = { code: 'cancelled', message: 'The job was cancelled' };

/** A retryable failure is tried again while attempts are left. */
export function nextState(
  ending: Ending,
  job: { attempt: number; max_attempts: number },
  backoff: Backoff,
  now: number,
  random = Math.random(),
): Transition {
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
        unattributedDeaths: ending.unattributedDeath ? 1 : 0,
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
        unattributedDeaths: 0,
      };
  }
}

/** Waits as long as the server asked, at most the longest backoff. */
function delayBefore(
  retryAfterMs: number | undefined,
  backoff: Backoff,
  attempt: number,
  random: number,
): number {
  const asked = Math.min(retryAfterMs ?? 0, backoff.maxMs);
  return Math.max(asked, delayAfter(backoff, attempt, random));
}
