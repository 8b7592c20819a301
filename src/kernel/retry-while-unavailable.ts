import { setTimeout as elapsed } from 'node:timers/promises';
import { isUnavailable } from './errors.ts';

/**
 * Does `work`, and does it again after `retryMs` while the database is unavailable. `mayRetry` is asked
 * before each wait, with the tries so far; when it says no, the error is thrown. A connection may break
 * after a commit and before its confirmation, so work that is repeated may have been done already.
 */
export async function retryWhileUnavailable<T>(
  work: (tries: number) => Promise<T>,
  retryMs: number,
  mayRetry: (tries: number) => boolean,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work(tries);
    } catch (error) {
      if (!isUnavailable(error) || !mayRetry(tries)) throw error;
    }
    await elapsed(retryMs);
  }
}
