/** Days and months in UTC, as `2026-11-22` and `2026-11`. */
import type { ScheduledRun } from '../api/schedules.ts';

const dayMs = 24 * 60 * 60 * 1_000;

export const dayOf = (time: string): string => time.slice(0, 10);
export const today = (): string => new Date().toISOString().slice(0, 10);

export const addDays = (day: string, n: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + n * dayMs).toISOString().slice(0, 10);

/** The same day of another month, or its last one. */
export function addMonths(day: string, n: number): string {
  const first = new Date(`${day.slice(0, 7)}-01T00:00:00Z`);
  first.setUTCMonth(first.getUTCMonth() + n);
  return first.toISOString().slice(0, 10);
}

/** Whole weeks from Monday on, which the month lies in. */
export function weeksOf(day: string): string[][] {
  const first = `${day.slice(0, 7)}-01`;
  const weekday = (new Date(`${first}T00:00:00Z`).getUTCDay() + 6) % 7;
  const end = addMonths(first, 1);
  const weeks: string[][] = [];
  for (let monday = addDays(first, -weekday); monday < end; monday = addDays(monday, 7)) {
    weeks.push(Array.from({ length: 7 }, (_, i) => addDays(monday, i)));
  }
  return weeks;
}

const monthText = new Intl.DateTimeFormat('en', {
  month: 'long',
  year: 'numeric',
  timeZone: 'UTC',
});
const dayText = new Intl.DateTimeFormat('en', {
  weekday: 'long',
  day: 'numeric',
  month: 'long',
  timeZone: 'UTC',
});
export const monthName = (day: string): string => monthText.format(new Date(`${day}T00:00:00Z`));
export const dayName = (day: string): string => dayText.format(new Date(`${day}T00:00:00Z`));

/** In the order of the clock. */
export function byDay(runs: readonly ScheduledRun[]): Map<string, ScheduledRun[]> {
  const days = new Map<string, ScheduledRun[]>();
  for (const run of runs.toReversed()) {
    const day = dayOf(run.scheduled_for);
    const list = days.get(day);
    if (list) list.push(run);
    else days.set(day, [run]);
  }
  return days;
}
