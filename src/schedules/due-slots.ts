/**
 * The slots of an expression in a stretch of time, for what comes after a downtime: counted by days
 * and listed from the newest, so that years of missed minutes cost no more than an hour of them.
 */
import { dayMs } from '../kernel/clock.ts';
import { type Cron, daysOfMonth, nextAfter } from './cron.ts';

const minuteMs = 60_000;

/** Slots from `first` to `now`, both included: the newest `max` in order, and how many came before. */
export function slotsUpTo(
  cron: Cron,
  first: number,
  now: number,
  max: number,
): { newest: number[]; older: number } {
  const total = countSlots(cron, first, now);
  let from = first;
  if (total > max) {
    // The earliest minute from which on there are no more than `max`.
    let low = 0;
    let high = Math.ceil((now - first) / minuteMs) + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (countSlots(cron, first + middle * minuteMs, now) <= max) high = middle;
      else low = middle + 1;
    }
    from = first + low * minuteMs;
  }
  const newest: number[] = [];
  let slot = nextAfter(cron, from - 1);
  while (slot !== null && slot <= now) {
    newest.push(slot);
    slot = nextAfter(cron, slot);
  }
  return { newest, older: total - newest.length };
}

/** How many slots there are from `from` to `to`, both included. */
export function countSlots(cron: Cron, from: number, to: number): number {
  if (from > to) return 0;
  const date = new Date(from);
  const origin = { year: date.getUTCFullYear(), month: date.getUTCMonth() };
  return (
    countBefore(cron, origin, Math.floor(to / minuteMs) + 1) -
    countBefore(cron, origin, Math.ceil(from / minuteMs))
  );
}

/** How many slots there are from the beginning of a month to before a minute since 1970. */
function countBefore(cron: Cron, origin: { year: number; month: number }, minute: number): number {
  const day = Math.floor((minute * minuteMs) / dayMs);
  const date = new Date(day * dayMs);
  const last = date.getUTCFullYear() * 12 + date.getUTCMonth();
  let days = 0;
  let isMatch = false;
  for (let at = origin.year * 12 + origin.month; at <= last; at++) {
    const [year, month] = [Math.floor(at / 12), at % 12];
    if (((cron.months >>> month) & 1) === 0) continue;
    const bits = daysOfMonth(cron, year, month, Date.UTC(year, month, 1));
    if (at < last) days += ones(bits);
    else {
      const before = date.getUTCDate() - 1;
      days += ones(bits & ((1 << before) - 1));
      isMatch = ((bits >>> before) & 1) === 1;
    }
  }
  const [low, high] = cron.minutes;
  const perHour = ones(low) + ones(high);
  const whole = days * ones(cron.hours[0]) * perHour;
  return isMatch ? whole + countInDay(cron, minute - day * 24 * 60, perHour) : whole;
}

/** How many slots a matching day has before its `minute`-th minute. */
function countInDay(cron: Cron, minute: number, perHour: number): number {
  const hour = Math.floor(minute / 60);
  const [low, high] = cron.minutes;
  const before = minute % 60;
  const inHour =
    before < 32 ? ones(low & (2 ** before - 1)) : ones(low) + ones(high & (2 ** (before - 32) - 1));
  const isMatch = ((cron.hours[0] >>> hour) & 1) === 1;
  return ones(cron.hours[0] & ((1 << hour) - 1)) * perHour + (isMatch ? inHour : 0);
}

/** How many bits are set. */
function ones(bits: number): number {
  let n = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) n++;
  return n;
}
