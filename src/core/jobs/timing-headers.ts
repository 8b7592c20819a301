/** The headers that say when a job may begin: `x-run-at` or `x-delay-seconds`, and `x-expires-in`. */
import type { FastifyRequest } from 'fastify';
import { OnceGiven, onceGiven } from '../../adapters/http/idempotency-key.ts';
import { invalid } from '../../kernel/errors.ts';
import { requireMoment } from '../../kernel/moment.ts';
import { aheadMaxDays, aheadMaxSeconds, type JobTiming } from './timing.ts';

export const timingHeaders = {
  'x-run-at': OnceGiven(
    `The job does not begin before this moment: ISO 8601 with a time zone, in the future, within ${aheadMaxDays} days. It is queued until then.`,
  ),
  'x-delay-seconds': OnceGiven(
    `The job does not begin before so many seconds have passed: an integer from 0 to ${aheadMaxSeconds}. Instead of x-run-at.`,
  ),
  'x-expires-in': OnceGiven(
    `A job that has not begun within so many seconds, 1 to ${aheadMaxSeconds}, ends as cancelled with the code expired. More than the time after which it may begin.`,
  ),
};

/** The names of the headers, for refusals of their values. */
export const timingNames = { runAt: 'x-run-at', expiresIn: 'x-expires-in' };

/** The times of a request, undefined without any; throws `400` for a malformed one. */
export function timingOf(request: FastifyRequest): JobTiming | undefined {
  const runAt = onceGiven(request, 'x-run-at');
  const delay = onceGiven(request, 'x-delay-seconds');
  const expiresIn = onceGiven(request, 'x-expires-in');
  if (runAt === undefined && delay === undefined && expiresIn === undefined) return undefined;
  if (runAt !== undefined && delay !== undefined) {
    throw invalid('x-delay-seconds', 'must not be sent together with x-run-at');
  }
  return {
    runAt: runAt === undefined ? undefined : requireMoment('x-run-at', runAt),
    delayMs: delay === undefined ? undefined : millisecondsOf('x-delay-seconds', delay, 0),
    expiresInMs: expiresIn === undefined ? undefined : millisecondsOf('x-expires-in', expiresIn, 1),
  };
}

function millisecondsOf(name: string, text: string, least: number): number {
  const seconds = /^(0|[1-9]\d{0,8})$/.test(text) ? Number(text) : Number.NaN;
  if (seconds >= least && seconds <= aheadMaxSeconds) return seconds * 1000;
  throw invalid(name, `must be an integer from ${least} to ${aheadMaxSeconds}`);
}
