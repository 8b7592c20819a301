/** Parses the timestamps and days of clients. */
import { invalid } from './errors.ts';

const momentPattern =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(:(\d{2})(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

const momentIssue = 'must be an ISO 8601 timestamp with a time zone';

/** The milliseconds of an ISO 8601 timestamp with a time zone, on an existing day; null for any other text. */
export function momentOf(text: string): number | null {
  const ms = momentPattern.test(text) ? Date.parse(text) : Number.NaN;
  // Date.parse rolls 30 February over into March.
  const [year, month, day] = text.slice(0, 10).split('-').map(Number) as [number, number, number];
  const rolled = new Date(Date.UTC(year, month - 1, day)).getUTCDate() !== day;
  return Number.isNaN(ms) || rolled ? null : ms;
}

/** The milliseconds of the timestamp in a field of a request; throws `400` for any other text. */
export function requireMoment(name: string, text: string): number {
  const ms = momentOf(text);
  if (ms === null) throw invalid(name, momentIssue);
  return ms;
}

/** The issue that an invalid day is reported with. */
export const dayIssue = 'must be a day, as 2026-11-21';

/** Whether a text is an existing day, as `2026-11-21`. */
export function isDay(text: string): boolean {
  return /^[1-9]\d{3}-/.test(text) && momentOf(`${text}T00:00Z`) !== null;
}
