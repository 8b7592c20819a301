/** Expiry times in request bodies. */
import { invalid } from '../../kernel/errors.ts';
import { requireMoment } from '../../kernel/moment.ts';

/** The field `expires_at` in milliseconds. Throws `400` unless it is after `now`. */
export function expiryOf(text: string, now: number): number {
  const ms = requireMoment('expires_at', text);
  if (ms <= now) throw invalid('expires_at', 'must lie in the future');
  return ms;
}
