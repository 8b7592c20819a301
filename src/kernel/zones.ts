/** Time zones by their names in the IANA database, as the runtime knows it. Time is passed in. */

/** Characters of a name; the longest one known has 32. */
export const zoneCharactersMax = 64;

/** A zone of the API's times; scheduled jobs without a zone of their own have it. */
export const utc = 'UTC';

/** Clocks are changed by at most a day: Samoa skipped one, Alaska had one twice. */
const changeMaxMs = 26 * 3_600_000;

/** The name in the database's letter case; null for one that it does not have, such as an offset or a time with a zone. */
export function zoneNamed(name: string): string | null {
  if (name.length > zoneCharactersMax || !/^[a-z]/i.test(name)) return null;
  try {
    const { timeZoneId } = at(name, 0);
    // A link such as Asia/Calcutta keeps its name.
    return timeZoneId.toLowerCase() === name.toLowerCase() ? timeZoneId : null;
  } catch {
    return null;
  }
}

/** The offset of a zone's local time from UTC at a moment, in milliseconds. */
export function offsetAt(zone: string, ms: number): number {
  return at(zone, ms).offsetNanoseconds / 1e6;
}

/** The first moment after `ms` at which the clock is changed; null when that never happens again. */
export function nextChange(zone: string, ms: number): number | null {
  return at(zone, ms).getTimeZoneTransition('next')?.epochMilliseconds ?? null;
}

/** The latest local time up to `ms`: the current one, unless the clock was set back shortly before. */
export function latestLocal(zone: string, ms: number): number {
  const shown = ms + offsetAt(zone, ms);
  const change = at(zone, ms + 1).getTimeZoneTransition('previous')?.epochMilliseconds;
  if (change === undefined || ms - change > changeMaxMs) return shown;
  return Math.max(shown, change - 1 + offsetAt(zone, change - 1));
}

function at(zone: string, ms: number): Temporal.ZonedDateTime {
  return Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone);
}
