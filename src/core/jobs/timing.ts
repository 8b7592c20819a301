/**
 * When a job may begin, as its client asks for it: later, and not after a moment (docs/decisions/jobs.md). Pure: time is
 * an argument.
 */
import { dayMs } from '../../kernel/clock.ts';
import { invalid } from '../../kernel/errors.ts';

/** How far ahead the beginning of a job may lie, and its expiry. */
export const aheadMaxDays = 365;
const aheadMaxMs = aheadMaxDays * dayMs;
export const aheadMaxSeconds = aheadMaxMs / 1000;

/** The times of a request; without one of them the job begins as soon as it can, and does not expire. */
export interface JobTiming {
  /** Not before this moment. */
  readonly runAt?: number | undefined;
  /** Not before this time after it is accepted. */
  readonly delayMs?: number | undefined;
  /** The time after its acceptance within which it must begin. */
  readonly expiresInMs?: number | undefined;
}

/** The names of the fields that hold them, for refusals. */
export interface TimingNames {
  readonly runAt: string;
  readonly expiresIn: string;
}

/** The columns of a job that is accepted at `now`. */
export function timesOf({ runAt, delayMs = 0, expiresInMs }: JobTiming, now: number) {
  return {
    // The moment may have passed since the request was checked.
    run_at: Math.max(now, runAt ?? now + delayMs),
    expires_at: expiresInMs === undefined ? null : now + expiresInMs,
  };
}

/** Throws `400 validation_error` for times that no job accepted at `now` can keep. */
export function refuseTiming(timing: JobTiming, now: number, names: TimingNames): void {
  const { runAt } = timing;
  if (runAt !== undefined) refuseMoment(names.runAt, runAt, now);
  const { run_at, expires_at } = timesOf(timing, now);
  if (expires_at !== null && expires_at <= run_at) {
    throw invalid(names.expiresIn, 'must be longer than the time after which the job may begin');
  }
}

/** Throws `400 validation_error` for a moment that is not ahead, or too far ahead. */
export function refuseMoment(name: string, ms: number, now: number): void {
  if (ms <= now) throw invalid(name, 'must lie in the future');
  if (ms > now + aheadMaxMs) throw invalid(name, `must lie within ${aheadMaxDays} days`);
}

/** The times as part of the fingerprint of a request with an Idempotency-Key. */
export function timingText({ runAt, delayMs, expiresInMs }: JobTiming): string {
  return `\nrun_at ${runAt ?? ''} delay ${delayMs ?? ''} expires ${expiresInMs ?? ''}`;
}
