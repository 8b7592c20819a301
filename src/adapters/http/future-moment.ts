/** Expiry times in request bodies. */
import { invalid } from '../../kernel/errors.ts';
import { momentIssue, momentOf } from '../../kernel/moment.ts';

/** The field `expires_at` in milliseconds. Throws `400` unless it is after `now`. */
export function expiryOf(text: string, now: number): number {
  const ms = momentOf(text);
  if (ms === null) throw invalid('expires_at', momentIssue);
  if (ms <= now) throw invalid('expires_at', 'must lie in the future');
  return ms;
}
