/**
 * The state machine of a job, pure: which state may follow which, and which one follows the end of
 * an attempt. Time and randomness are passed in.
 */
import type { JobStatus } from '../../adapters/database/tables.ts';
import { type Backoff, delayAfter } from '../../kernel/backoff.ts';
import type { RunErrorCode } from '../../kernel/errors.ts';
import type { JobError, Transition } from '../context/run-observer.ts';
import type { RunOutcome } from '../executors/run.ts';

/** Which states may follow each state. A final one has none. */
export const jobTransitions: Record<JobStatus, readonly JobStatus[]> = {
  // `waiting` without a claim: the run of another job of the conversation has taken its message, and it ends with that one.
  queued: ['active', 'waiting', 'cancelled'],
  active: ['queued', 'waiting', 'completed', 'failed', 'cancelled'],
  waiting: ['active', 'completed', 'failed', 'cancelled'],
  completed: [],
  failed: [],
  cancelled: [],
};

export type { JobError, Transition };

export function isFinal(status: JobStatus): boolean {
  return jobTransitions[status].length === 0;
}

/** How an attempt ended: as its executor reports it, or as the platform decided. */
export type AttemptOutcome =
  | RunOutcome
  | {
      readonly kind: 'failed';
      readonly code: RunErrorCode;
      readonly message: string;
      readonly retryable: boolean;
      /** Milliseconds for which the server that refused asks for no further request. */
      readonly retryAfterMs?: number;
    }
  | { readonly kind: 'cancelled' }
  /** It could not start: the job goes back to the queue for so long, and no attempt is charged. */
  | { readonly kind: 'deferred'; readonly afterMs: number }
  /** The claim ended before the code of the run began: no attempt is charged. */
  | { readonly kind: 'unbegun' };

export const cancelledError: JobError = { code: 'cancelled', message: 'The job was cancelled' };

/** The end of a job that had not begun when it expired. */
export const expiredError: JobError = {
  code: 'expired',
  message: 'The job had not begun when its time to begin had passed',
};

/** The end of a job that had not begun when a later one of its key was accepted. */
export const replacedError: JobError = {
  code: 'replaced',
  message: 'A later job of its key has taken its place',
};

/** Deaths of its executor that it may have caused, after which a job runs with no neighbour. */
const deathsBeforeAlone = 2;

/** Whether a job must run with no neighbour, because it may have killed executors before. */
export function runsAlone(job: { readonly deaths: number }): boolean {
  return job.deaths >= deathsBeforeAlone;
}

/** Why an attempt failed; null when it did not. */
export function failureOf(outcome: AttemptOutcome): JobError | null {
  switch (outcome.kind) {
    case 'failed':
      return { code: outcome.code, message: outcome.message };
    case 'timeout':
      return { code: 'skill_timeout', message: outcome.message };
    case 'lost':
      return { code: 'worker_lost', message: outcome.message };
    default:
      return null;
  }
}

/** A retryable failure is tried again while attempts are left. */
export function nextState(
  outcome: AttemptOutcome,
  job: { attempt: number; max_attempts: number; deaths: number; attempts_before?: number },
  backoff: Backoff,
  now: number,
  random = Math.random(),
): Transition {
  switch (outcome.kind) {
    case 'completed':
      return { status: 'completed', output: outcome.output };
    case 'cancelled':
      return { status: 'cancelled', error: cancelledError };
    case 'aborted':
    case 'unbegun':
      return returned(now, 0);
    case 'displaced':
      return returned(now, outcome.suspect ? 1 : 0);
    case 'deferred':
      return returned(now + outcome.afterMs, 0);
    case 'waiting':
      return { status: 'waiting', dueAt: now };
    default: {
      const error = failureOf(outcome) as JobError;
      if (!isRetryable(outcome, job) || job.attempt >= job.max_attempts) {
        return { status: 'failed', error };
      }
      const retryAfterMs = 'retryAfterMs' in outcome ? outcome.retryAfterMs : 0;
      return {
        status: 'queued',
        runAt: now + delayBefore(retryAfterMs, backoff, attemptOf(job), random),
        error,
        refund: 0,
        unattributedDeaths: 0,
      };
    }
  }
}

/** The number of the attempt since the count began anew. */
function attemptOf({ attempt, attempts_before = 0 }: Parameters<typeof nextState>[1]): number {
  return Math.max(1, attempt - attempts_before);
}

/** Whether no attempt is left after this one. Its beginning is recorded, because its loss ends the job. */
export function isLastAttempt(job: {
  readonly attempt: number;
  readonly max_attempts: number;
}): boolean {
  return job.attempt >= job.max_attempts;
}

/** Claims in a row of a model's run that may end without a new turn. */
export const idleClaimsMax = 20;

/** Claims of a model's run that may begin generations, after which one that fails has advanced only by continuing one. */
export const beginningsMax = 10;

/**
 * Whether a claim that failed has recorded a turn that brings its run forward. Code that asks for something else in each
 * attempt continues nothing that is on record: it may not pay for turns for ever.
 */
export function hasAdvanced(
  turns: {
    readonly epoch: number | string;
    readonly continued: number | string;
    readonly beginnings: number | string;
  },
  epoch: number,
): boolean {
  if (Number(turns.epoch) !== epoch) return false;
  return Number(turns.continued) === epoch || Number(turns.beginnings) <= beginningsMax;
}

/** What the claims of a model's run have come to; only such a run has it. */
export interface Progress {
  /** Attempts before the count began anew. */
  readonly attempts_before: number;
  readonly max_attempts: number;
  /** Claims in a row that ended without a new turn, including the one that ends. */
  readonly idle_claims: number;
}

/**
 * The progress of a model's run after a claim. Where a turn was recorded since the claim, a lost process or a failure
 * begins the count of attempts anew: the job may have as many again as its skill allows.
 */
export function progressAfter(
  outcome: AttemptOutcome,
  job: Progress & { readonly attempt: number },
  hasNewTurn: boolean,
): Progress {
  const { attempt, attempts_before, max_attempts, idle_claims } = job;
  if (!hasNewTurn) return { attempts_before, max_attempts, idle_claims: idle_claims + 1 };
  if (!isLostProcess(outcome) && !isRepeatedFailure(outcome, job)) {
    return { attempts_before, max_attempts, idle_claims: 0 };
  }
  const allowed = max_attempts - attempts_before;
  return { attempts_before: attempt, max_attempts: attempt + allowed, idle_claims: 0 };
}

/** Whether a claim was ended by something else than the code of its run, after this had begun. */
export function isInterruption(outcome: AttemptOutcome): boolean {
  return outcome.kind === 'aborted' || outcome.kind === 'displaced' || isLostProcess(outcome);
}

/** Whether a failure is one that a further attempt may follow. A skill with one attempt runs at most once. */
export function isRepeatedFailure(
  outcome: AttemptOutcome,
  { attempts_before, max_attempts }: Pick<Progress, 'attempts_before' | 'max_attempts'>,
): boolean {
  if (outcome.kind === 'failed' && !outcome.retryable) return false;
  return failureOf(outcome) !== null && max_attempts - attempts_before > 1;
}

const isLostProcess = (outcome: AttemptOutcome) =>
  outcome.kind === 'failed' && outcome.code === 'worker_lost';

/** The end of a model's run that is interrupted again and again before it records anything. */
export const stuckError: JobError = {
  code: 'worker_lost',
  message: `The run was interrupted ${idleClaimsMax} times in a row without a new turn of its model`,
};

/** A failure is final instead of tried again; an attempt that was not charged becomes a cancellation. */
export function withoutRetry(transition: Transition): Transition {
  if (transition.status !== 'queued') return transition;
  const { error } = transition;
  return error === null
    ? { status: 'cancelled', error: cancelledError }
    : { status: 'failed', error };
}

/** Back to the queue, with an attempt that is not charged. */
function returned(runAt: number, unattributedDeaths: 0 | 1): Transition {
  return { status: 'queued', runAt, error: null, refund: 1, unattributedDeaths };
}

function isRetryable(
  outcome: Extract<AttemptOutcome, { kind: 'failed' | 'timeout' | 'lost' }>,
  job: { deaths: number },
): boolean {
  if (outcome.kind === 'failed') return outcome.retryable;
  // One that was lost although it ran alone would kill every executor.
  return outcome.kind === 'timeout' || !runsAlone(job);
}

/** Waits as long as the server requests, at most the longest backoff. */
function delayBefore(retryAfterMs = 0, backoff: Backoff, attempt: number, random: number): number {
  return Math.max(Math.min(retryAfterMs, backoff.maxMs), delayAfter(backoff, attempt, random));
}
