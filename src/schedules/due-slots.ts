/**
 * Lists and counts the slots of an expression in a period, for the time after a downtime. Whole days are counted by
 * day, so that years of missed minutes take less than a tenth of a second.
 */
import { dayMs } from '../kernel/clock.ts';
import { type Cron, daysOf, nextMatch } from './cron.ts';

/** Slots from `first` to `now`, both included: the newest `max` in order, and how many came before. */
export function slotsUpTo(
  cron: Cron,
  first: number,
  now: number,
  max: number,
): { newest: number[]; older: number } {
  const slots = firstSlots(cron, first, now + 1, max + 1);
  if (slots.length <= max) return { newest: slots, older: 0 };
  const newest = cron
    .previousRuns(max, new Date(now + 1))
    .map(Number)
    .reverse();
  return { newest, older: countSlots(cron, first, newest[0] as number) };
}

/** How many slots there are from `from` to before `to`. */
export function countSlots(cron: Cron, from: number, to: number): number {
  const midnight = Math.ceil(from / dayMs) * dayMs;
  const lastMidnight = Math.floor(to / dayMs) * dayMs;
  if (midnight >= lastMidnight) return firstSlots(cron, from, to).length;
  const days = firstSlots(daysOf(cron), midnight, lastMidnight);
  const ofOneDay = days.slice(0, 1).flatMap((day) => firstSlots(cron, day, day + dayMs)).length;
  const before = firstSlots(cron, from, midnight).length;
  return before + days.length * ofOneDay + firstSlots(cron, lastMidnight, to).length;
}

/** The first slots from `from` to before `to`, at most `max`. */
export function firstSlots(
  cron: Cron,
  from: number,
  to: number,
  max = Number.POSITIVE_INFINITY,
): number[] {
  const slots: number[] = [];
  let slot = nextMatch(cron, from - 1);
  while (slot < to && slots.length < max) {
    slots.push(slot);
    slot = nextMatch(cron, slot);
  }
  return slots;
}
