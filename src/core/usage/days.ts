/** Days and months by which tokens are counted, in UTC. A day is `YYYY-MM-DD`, a month `YYYY-MM`. */
import { dayMs, timestamp } from '../../kernel/clock.ts';
import { invalid } from '../../kernel/errors.ts';
import type { DayRange } from './usage.store.ts';

/** Days that one request may cover. */
export const daysMax = 400;
/** Days of a request without `from`, the last day included. */
const daysDefault = 30;

/** The day of a moment. */
export function dayOf(ms: number): string {
  return timestamp(ms).slice(0, 10);
}

/** The month of a day. */
export function monthOf(day: string): string {
  return day.slice(0, 7);
}

/** The month of a day, always up to the 31st: days are compared as text. */
export function monthRange(day: string): DayRange {
  const month = monthOf(day);
  return { from: `${month}-01`, to: `${month}-31` };
}

/**
 * The requested days, which exist; by default the 30 days up to today. Throws `400` for a `from` after
 * `to`, and for more than 400 days.
 */
export function rangeOf(
  requested: { from?: string | undefined; to?: string | undefined },
  now: number,
): DayRange {
  const to = startOf(requested.to ?? dayOf(now));
  const from =
    requested.from === undefined ? to - (daysDefault - 1) * dayMs : startOf(requested.from);
  if (from > to) throw invalid('from', 'must not be after to, which is today when it is left out');
  if (to - from >= daysMax * dayMs) {
    throw invalid('from', `must be so late that there are at most ${daysMax} days up to to`);
  }
  return { from: dayOf(from), to: dayOf(to) };
}

const startOf = (day: string) => Date.parse(`${day}T00:00:00.000Z`);
