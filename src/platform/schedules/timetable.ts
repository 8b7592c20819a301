/**
 * When a scheduled job fires: a cron expression in the local times of a zone (docs/decisions/schedules.md). Where
 * the hour field begins with `*`, it fires whenever the clock shows a match. Otherwise each match fires once: when the
 * clock first shows that time, or as it is set forward past it. Time is passed in.
 */

import { latestLocal, nextChange, offsetAt, utc, zoneNamed } from '../../kernel/zones.ts';
import { type Cron, nextMatch, normalForm, parseCron, parseStoredCron } from './cron.ts';

export interface Timetable {
  readonly cron: Cron;
  /** Null for UTC. */
  readonly zone: string | null;
  /** Whether it fires again for times that the clock shows again, and never for times that it skips. */
  readonly followsElapsedTime: boolean;
}

/** The columns of a scheduled job that say when it fires; without a zone, in UTC. */
export interface TimetableColumns {
  readonly cron_expression: string;
  readonly timezone: string | null;
}

/** Throws CronError for a malformed expression; the zone is one of `zoneNamed`. */
export function parseTimetable({ cron_expression, timezone }: TimetableColumns): Timetable {
  return timetableOf(parseCron(cron_expression), timezone);
}

/** Null for a stored expression that is invalid, or a zone that this runtime does not know. */
export function parseStoredTimetable({
  cron_expression,
  timezone,
}: TimetableColumns): Timetable | null {
  const cron = parseStoredCron(cron_expression);
  if (cron === null || zoneNamed(timezone ?? utc) === null) return null;
  return timetableOf(cron, timezone);
}

/** The normal form by which timetables are compared: that of the expression, and the zone. */
export function timetableKey({ cron_expression, timezone }: TimetableColumns): string {
  const expression = normalForm(cron_expression);
  return timezone === null ? expression : `${expression} ${timezone}`;
}

function timetableOf(cron: Cron, timezone: string | null): Timetable {
  const hour = (cron.getPattern() as string).split(' ')[1] as string;
  return {
    cron,
    zone: timezone === utc ? null : timezone,
    followsElapsedTime: hour.startsWith('*'),
  };
}

/** The first moment after `ms` at which it fires. */
export function nextSlot({ cron, zone, followsElapsedTime }: Timetable, ms: number): number {
  if (zone === null) return nextMatch(cron, ms);
  let from = ms;
  let offset = offsetAt(zone, ms);
  let match = nextMatch(cron, followsElapsedTime ? ms + offset : latestLocal(zone, ms));
  for (;;) {
    const change = nextChange(zone, from);
    // The clock is set forward past the match at `from` where the match would be earlier.
    if (change === null || match - offset < change) return Math.max(match - offset, from);
    const before = offset;
    from = change;
    offset = offsetAt(zone, change);
    if (followsElapsedTime && (offset < before || match < change + offset)) {
      match = nextMatch(cron, change + offset - 1);
    }
  }
}

/** A part of a time between two changes of the clock. */
export interface Period {
  /** What the clock shows beyond UTC. */
  readonly offset: number;
  /** The matches that fire in it, from the first local time to before the last. */
  readonly local: { readonly from: number; readonly to: number };
  /** When it fires as well, for matches that the clock was set forward past; null if never. */
  readonly skippedTo: number | null;
}

/** The parts of the time from `from` to before `to`, oldest first. */
export function periodsOf(timetable: Timetable, from: number, to: number): Period[] {
  const { cron, zone, followsElapsedTime } = timetable;
  if (zone === null) return [{ offset: 0, local: { from, to }, skippedTo: null }];
  const periods: Period[] = [];
  let latest = latestLocal(zone, from - 1);
  for (let begin = from; begin < to; ) {
    const offset = offsetAt(zone, begin);
    const end = Math.min(nextChange(zone, begin) ?? to, to);
    const shown = begin + offset;
    const first = followsElapsedTime ? shown : Math.max(shown, latest + 1);
    const isSkipped =
      !followsElapsedTime &&
      nextMatch(cron, latest) < shown &&
      nextMatch(cron, shown - 1) !== shown;
    periods.push({
      offset,
      local: { from: first, to: Math.max(first, end + offset) },
      skippedTo: isSkipped ? begin : null,
    });
    latest = Math.max(latest, end - 1 + offset);
    begin = end;
  }
  return periods;
}
