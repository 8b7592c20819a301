/** Days and months by which tokens are counted, in UTC. A day is `YYYY-MM-DD`, a month `YYYY-MM`. */
import { dayMs, timestamp } from '../kernel/clock.ts';
import { invalid } from '../kernel/errors.ts';

/** Days that one question may be about. */
export const daysMax = 400;
/** Days shown when a question names none, the last of them included. */
const daysDefault = 30;

/** Both days included. */
export interface DayRange {
  readonly from: string;
  readonly to: string;
}

/** The day of a moment. */
export function dayOf(ms: number): string {
  return timestamp(ms).slice(0, 10);
}

/** The month of a day. */
export function monthOf(day: string): string {
  return day.slice(0, 7);
}

/** The days of a day's month; as text, so that the last may be one which that month does not have. */
export function monthAround(day: string): DayRange {
  const month = monthOf(day);
  return { from: `${month}-01`, to: `${month}-31` };
}

/**
 * The days that a question is about: up to `today` and 30 of them where it does not say. Throws `400`
 * for what is no day, for an end before the beginning and for more than 400 days.
 */
export function rangeOf(
  asked: { from?: string | undefined; to?: string | undefined },
  now: number,
): DayRange {
  const to = asked.to === undefined ? startOf(dayOf(now)) : dayGiven('to', asked.to);
  const from =
    asked.from === undefined ? to - (daysDefault - 1) * dayMs : dayGiven('from', asked.from);
  if (from > to) throw invalid('from', 'must not be after to, which is today when it is left out');
  if (to - from >= daysMax * dayMs) {
    throw invalid('from', `must be so late that there are at most ${daysMax} days up to to`);
  }
  return { from: dayOf(from), to: dayOf(to) };
}

const startOf = (day: string) => Date.parse(`${day}T00:00:00.000Z`);

/** The start of a day that a client named, in milliseconds. */
function dayGiven(field: string, text: string): number {
  const start = /^[1-9]\d{3}-\d{2}-\d{2}$/.test(text) ? startOf(text) : Number.NaN;
  // What is no number is no day; what comes out as another day is none of the calendar.
  if (Number.isNaN(start) || dayOf(start) !== text) {
    throw invalid(field, 'must be a day, as 2026-11-21');
  }
  return start;
}
