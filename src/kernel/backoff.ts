/** Computes the time of the next attempt. Pure; the random number is passed in. */

/** Exponential backoff: `baseMs` × 2ⁿ for the n-th retry (from 0), never above `maxMs`. */
export interface Backoff {
  readonly baseMs: number;
  readonly maxMs: number;
}

/**
 * Milliseconds until the next attempt after `attempt` attempts (from 1) have failed. Jitter
 * removes up to a fifth, so that jobs that failed together are not retried together.
 */
export function delayAfter(backoff: Backoff, attempt: number, random = Math.random()): number {
  const full = Math.min(backoff.maxMs, backoff.baseMs * 2 ** Math.max(0, attempt - 1));
  return Math.round(full * (1 - random / 5));
}
