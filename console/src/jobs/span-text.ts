/** What is said of the spans of a timeline. */
import { durationText } from '../ui/Time.tsx';
import type { Span } from './spans.ts';

/** A moment between two spans, without length or end. */
export const isMoment = ({ kind }: Span): boolean => kind === 'accepted' || kind === 'settled';

/** In UTC, within its day or with the day: `09:00:00.000`, `11-25 09:00:00.000`. */
export const clockText = (ms: number, hasDay = false): string =>
  new Date(ms)
    .toISOString()
    .slice(hasDay ? 5 : 11, 23)
    .replace('T', ' ');

/** Whether times have to be told with their day. */
export const isOverDays = (start: number, end: number): boolean =>
  clockText(start, true).slice(0, 5) !== clockText(end, true).slice(0, 5);

/** All that there is to say of a span, in one line, on a timeline that ends at `end`. */
export function spanText(span: Span, end: number, hasDay = false): string {
  const { from, to, outcome, error } = span;
  const reason = error === null ? '' : `${error.code}: ${error.message}`;
  const at = clockText(from, hasDay);
  if (isMoment(span)) return [`${at} UTC`, reason].filter(Boolean).join(' · ');
  const until = to === null ? 'now' : clockText(to, hasDay);
  const parts = [`${at} – ${until} UTC`, durationText((to ?? end) - from), outcome];
  return [...parts, reason].filter(Boolean).join(' · ');
}
