/** Cron expressions and time zones in requests: validation, the stored form, and previews. */
import { timestamp } from '../../kernel/clock.ts';
import { type Issue, invalidIn } from '../../kernel/errors.ts';
import { utc, zoneNamed } from '../../kernel/zones.ts';
import { CronError, parseCron } from './cron.ts';
import {
  nextSlot,
  parseTimetable,
  type Timetable,
  type TimetableColumns,
  timetableKey,
} from './timetable.ts';

/** The parsed expression in its zone, or `400 validation_error`. */
export function timetableOf(columns: TimetableColumns): Timetable {
  const { cron_expression, timezone } = columns;
  const faults = [...zoneFaults(timezone), ...expressionFaults(cron_expression)];
  if (faults.length > 0) throw invalidIn(faults);
  return parseTimetable(columns);
}

function zoneFaults(timezone: string | null): Issue[] {
  if (timezone === null || zoneNamed(timezone) !== null) return [];
  const issue = 'must be a name of the IANA time zone database, such as Europe/Berlin';
  return [{ field: 'timezone', issue }];
}

function expressionFaults(expression: string): Issue[] {
  try {
    parseCron(expression);
    return [];
  } catch (error) {
    if (!(error instanceof CronError)) throw error;
    return [{ field: 'cron_expression', issue: error.message }];
  }
}

/** The columns for an expression and a zone, neither validated yet. */
export function timetableColumns(cron_expression: string, zone: string | null) {
  const name = zone === null ? null : (zoneNamed(zone) ?? zone);
  const columns = { cron_expression, timezone: name === utc ? null : name };
  return { ...columns, cron_key: timetableKey(columns) };
}

/** The time zone as the API shows it: only where it was set. */
export function shownTimezone({ timezone }: Pick<TimetableColumns, 'timezone'>) {
  return timezone === null ? null : { timezone };
}

/** The next `count` slots of an expression in a zone. */
export function nextRunsOf(expression: string, zone: string, count: number, now: number) {
  const columns = timetableColumns(expression, zone);
  const timetable = timetableOf(columns);
  const nextRuns: string[] = [];
  for (let at = now; nextRuns.length < count; ) {
    at = nextSlot(timetable, at);
    nextRuns.push(timestamp(at));
  }
  return { cron_expression: expression, ...shownTimezone(columns), next_runs: nextRuns };
}
