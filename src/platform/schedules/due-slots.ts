/**
 * Lists and counts the slots of a timetable in a period, for the time after a downtime. Matches are counted by day,
 * so that years of missed minutes take less than a tenth of a second.
 */
import { dayMs } from '../../kernel/clock.ts';
import { type Cron, daysOf, nextMatch } from './cron.ts';
import { nextSlot, type Period, periodsOf, type Timetable } from './timetable.ts';

/** Slots from `first` to `now`, both included: the newest `max` in order, and how many came before. */
export function slotsUpTo(
  timetable: Timetable,
  first: number,
  now: number,
  max: number,
): { newest: number[]; older: number } {
  const slots = firstSlots(timetable, first, now + 1, max + 1);
  if (slots.length <= max) return { newest: slots, older: 0 };
  const { cron } = timetable;
  const day = matchingDays(cron);
  const newest: number[] = [];
  let older = 0;
  for (const period of periodsOf(timetable, first, now + 1).reverse()) {
    const matches = countMatches(day, period.local.from, period.local.to);
    const taken = Math.min(matches, max - newest.length);
    newest.unshift(...lastMatches(cron, period, taken));
    older += matches - taken;
    if (period.skippedTo === null) continue;
    if (newest.length < max) newest.unshift(period.skippedTo);
    else older += 1;
  }
  return { newest, older };
}

/** The first slots from `from` to before `to`, at most `max`. */
export function firstSlots(
  timetable: Timetable,
  from: number,
  to: number,
  max = Number.POSITIVE_INFINITY,
): number[] {
  const slots: number[] = [];
  let slot = nextSlot(timetable, from - 1);
  while (slot < to && slots.length < max) {
    slots.push(slot);
    slot = nextSlot(timetable, slot);
  }
  return slots;
}

/** The days of an expression, and the times at which it matches on each of them. */
interface MatchingDays {
  readonly days: Cron;
  /** Milliseconds after the beginning of the day, in order. */
  readonly times: readonly number[];
}

function matchingDays(cron: Cron): MatchingDays {
  const days = daysOf(cron);
  const day = nextMatch(days, 0);
  return { days, times: matchesBetween(cron, day, day + dayMs).map((time) => time - day) };
}

/** How many local times match from `from` to before `to`. */
function countMatches({ days, times }: MatchingDays, from: number, to: number): number {
  if (from >= to) return 0;
  const firstDay = Math.floor(from / dayMs) * dayMs;
  let sum = 0;
  for (const day of matchesBetween(days, firstDay, to)) {
    if (day >= from && day + dayMs <= to) sum += times.length;
    else sum += times.filter((time) => day + time >= from && day + time < to).length;
  }
  return sum;
}

/** The last `count` matches of a period that has so many, in order, as moments. */
function lastMatches(cron: Cron, { local, offset }: Period, count: number): number[] {
  if (count === 0) return [];
  return cron
    .previousRuns(count, new Date(local.to))
    .map((match) => Number(match) - offset)
    .reverse();
}

function matchesBetween(cron: Cron, from: number, to: number): number[] {
  const matches: number[] = [];
  for (let match = nextMatch(cron, from - 1); match < to; match = nextMatch(cron, match)) {
    matches.push(match);
  }
  return matches;
}
