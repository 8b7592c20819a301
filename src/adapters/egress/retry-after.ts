import { delayOfRetryAfter } from '../../kernel/retry-after.ts';
import type { EgressResponse } from './guarded-fetch.ts';

/** Milliseconds for which a service asks to be left alone (`Retry-After`), an hour at most; null where it names no time. */
export function retryAfterOf({ headers }: EgressResponse, now: number): number | null {
  const [text = ''] = [headers['retry-after'] ?? []].flat();
  return delayOfRetryAfter(text, now);
}
