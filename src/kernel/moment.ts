/** Moments as clients write them. */

const momentPattern =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(:(\d{2})(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/;

/** What is wrong with a text that is none. */
export const momentIssue = 'must be an ISO 8601 timestamp with a time zone';

/** An ISO 8601 moment with a zone, on a day that exists, in milliseconds; null for anything else. */
export function momentOf(text: string): number | null {
  const ms = momentPattern.test(text) ? Date.parse(text) : Number.NaN;
  // Date.parse rolls 30 February over into March.
  const [year, month, day] = text.slice(0, 10).split('-').map(Number) as [number, number, number];
  const rolled = new Date(Date.UTC(year, month - 1, day)).getUTCDate() !== day;
  return Number.isNaN(ms) || rolled ? null : ms;
}
