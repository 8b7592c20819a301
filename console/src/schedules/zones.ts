/** Time zones of schedules. */

export const utc = 'UTC';

/** The zone of this browser, as a suggestion. */
export const browserZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The names that a schedule may have, as this browser knows them. */
export const zoneNames = (): string[] => [
  ...new Set([utc, browserZone(), ...Intl.supportedValuesOf('timeZone')]),
];

/** An expression with its zone, where it has one of its own: `0 9 * * * Europe/Berlin`. */
export const timetableText = (of: {
  readonly cron_expression: string;
  readonly timezone?: string | undefined;
}): string =>
  of.timezone === undefined ? of.cron_expression : `${of.cron_expression} ${of.timezone}`;

/** A time as a clock of the zone shows it: `Fri`, `2026-11-27 09:00`; in UTC where the browser does not know the zone. */
export function localTime(time: string, zone: string): { weekday: string; text: string } {
  const at = new Date(time);
  const part = partsOf(at, zone) ?? partsOf(at, utc) ?? {};
  const { weekday = '', year, month, day, hour, minute } = part;
  return { weekday, text: `${year}-${month}-${day} ${hour}:${minute}` };
}

function partsOf(at: Date, timeZone: string): Record<string, string> | null {
  try {
    const format = new Intl.DateTimeFormat('en-u-hc-h23', {
      ...{ timeZone, weekday: 'short', year: 'numeric', month: '2-digit', day: '2-digit' },
      ...{ hour: '2-digit', minute: '2-digit' },
    });
    return Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
  } catch {
    return null;
  }
}
