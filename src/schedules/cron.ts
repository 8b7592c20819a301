/**
 * Five-field cron expressions in UTC (specification: Scheduled job; docs/decisions/schedules.md). Each field
 * is a set of bits, and the next match is found by walking years, months and days by those bits, so
 * the rarest expression costs little more than `* * * * *`. Pure; time is passed in.
 */
import { dayMs } from '../kernel/clock.ts';

/** Characters of an expression, as it was given. */
export const cronCharactersMax = 256;
/** After so many years the Gregorian calendar repeats, weekdays included: later years cannot match either. */
const cycleYears = 400;
const minuteMs = 60_000;

/** The numbers from 0 to 63 that a field matches. */
type Bits = readonly [low: number, high: number];

/** A parsed expression; equal for all texts that mean the same. */
export interface Cron {
  readonly minutes: Bits;
  readonly hours: Bits;
  /** Bit 0 is the first day of a month. */
  readonly days: number;
  /** Bit 0 is January. */
  readonly months: number;
  /** Bit 0 is Sunday. */
  readonly weekdays: number;
  /** Whether a day matches by either of its two fields, instead of by both. */
  readonly isEitherDay: boolean;
}

/** An invalid expression; the message is the end of a sentence that begins with the field's name. */
export class CronError extends Error {}

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Names of the numbers from `min` on. */
  readonly names?: readonly string[];
}

const fields: readonly Field[] = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of month', min: 1, max: 31 },
  {
    name: 'month',
    min: 1,
    max: 12,
    names: ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'],
  },
  {
    name: 'day of week',
    min: 0,
    max: 7,
    names: ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'],
  },
];

/** Parses an expression; throws CronError for one that is malformed or that never fires. */
export function parseCron(text: string): Cron {
  if (text.length > cronCharactersMax) {
    throw new CronError(`must be at most ${cronCharactersMax} characters`);
  }
  const texts = words(text);
  if (texts.length !== fields.length) {
    throw new CronError('must have five fields: minute, hour, day of month, month, day of week');
  }
  const [minutes, hours, days, months, weekdays] = fields.map((field, i) =>
    parseField(field, texts[i] as string),
  ) as [Bits, Bits, Bits, Bits, Bits];
  const cron: Cron = {
    minutes,
    hours,
    days: days[0] >>> 1,
    months: months[0] >>> 1,
    // The bit of 7 is Sunday's too.
    weekdays: (weekdays[0] | (weekdays[0] >>> 7)) & 0x7f,
    isEitherDay: isRestricted(texts[2]) && isRestricted(texts[4]),
  };
  if (nextAfter(cron, 0) === null) throw new CronError('never fires: no such day exists');
  return cron;
}

/** The normal form by which expressions are compared, without regard to spaces and letter case. */
export function normalForm(text: string): string {
  return words(text).join(' ').toUpperCase();
}

const words = (text: string) => text.split(/[ \t\r\n\f\v]+/).filter((word) => word !== '');

/** As cron(8) has it: by how the text begins, so a step on the asterisk restricts nothing. */
const isRestricted = (text = '') => !text.startsWith('*');

function parseField(field: Field, text: string): Bits {
  let low = 0;
  let high = 0;
  for (const item of text.split(',')) {
    const { first, last, step } = parseItem(field, item);
    for (let n = first; n <= last; n += step) {
      if (n < 32) low |= 1 << n;
      else high |= 1 << (n - 32);
    }
  }
  return [low, high];
}

const itemPattern = /^(?:\*|(\w+)(?:-(\w+))?)(?:\/(\d+))?$/;

function parseItem(field: Field, item: string): { first: number; last: number; step: number } {
  const match = itemPattern.exec(item);
  if (match === null) throw fault(field, item, 'is not a number, a range or *');
  const [, from, to, stepText] = match;
  const first = from === undefined ? field.min : parseValue(field, from);
  const last = from === undefined ? field.max : to === undefined ? first : parseValue(field, to);
  if (first > last) throw fault(field, item, 'is a range that ends before it begins');
  if (stepText === undefined) return { first, last, step: 1 };
  if (from !== undefined && to === undefined) {
    throw fault(field, item, 'has a step, which needs * or a range before it');
  }
  const step = Number(stepText);
  if (step === 0) throw fault(field, item, 'has the step 0');
  return { first, last, step };
}

function parseValue(field: Field, text: string): number {
  const { names = [], min, max } = field;
  // ASCII alone: the upper case of some other letters is an ASCII one.
  const named = /^[A-Za-z]{3}$/.test(text) ? names.indexOf(text.toUpperCase()) : -1;
  if (named >= 0) return named + min;
  if (!/^[0-9]+$/.test(text)) throw fault(field, text, 'is not known here');
  const value = Number(text);
  if (value < min || value > max) throw fault(field, text, `is not from ${min} to ${max}`);
  return value;
}

function fault(field: Field, text: string, what: string): CronError {
  const shown = text === '' ? 'an empty entry' : JSON.stringify(text.slice(0, 40));
  return new CronError(`has ${shown} in the field ${field.name}, which ${what}`);
}

/** The first moment after `ms` that matches, a whole minute in UTC; null when there is none. */
export function nextAfter(cron: Cron, ms: number): number | null {
  const start = (Math.floor(ms / minuteMs) + 1) * minuteMs;
  const date = new Date(start);
  const startYear = date.getUTCFullYear();
  const startMonth = date.getUTCMonth();
  const today = startOfDay(start);
  for (let year = startYear; year <= startYear + cycleYears; year++) {
    const isStartYear = year === startYear;
    let month = lowestBit(cron.months, isStartYear ? startMonth : 0);
    for (; month >= 0; month = lowestBit(cron.months, month + 1)) {
      const firstDay = Date.UTC(year, month, 1);
      const days = daysOfMonth(cron, year, month, firstDay);
      const isStartMonth = isStartYear && month === startMonth;
      let day = lowestBit(days, isStartMonth ? date.getUTCDate() - 1 : 0);
      for (; day >= 0; day = lowestBit(days, day + 1)) {
        const at = firstDay + day * dayMs;
        const time = timeOfDay(cron, at === today ? (start - today) / minuteMs : 0);
        if (time !== null) return at + time * minuteMs;
      }
    }
  }
  return null;
}

/** As `nextAfter`, for an expression that `parseCron` has taken: that one always has a next match. */
export function nextMatch(cron: Cron, ms: number): number {
  const next = nextAfter(cron, ms);
  if (next === null) throw new Error('The cron expression has no next match.');
  return next;
}

/** The first minute of a day, from `from` on, that matches; null when there is none left. */
function timeOfDay(cron: Cron, from: number): number | null {
  const hour = Math.floor(from / 60);
  if (has(cron.hours, hour)) {
    const minute = lowest(cron.minutes, from % 60);
    if (minute >= 0) return hour * 60 + minute;
  }
  const later = lowest(cron.hours, hour + 1);
  return later < 0 ? null : later * 60 + lowest(cron.minutes, 0);
}

/** The days of a month that match: bit 0 is its first. `firstDay` is the moment at which it begins. */
export function daysOfMonth(cron: Cron, year: number, month: number, firstDay: number): number {
  const length = (Date.UTC(year, month + 1, 1) - firstDay) / dayMs;
  // 1970 began on a Thursday.
  const weekday = (((firstDay / dayMs + 4) % 7) + 7) % 7;
  const week = ((cron.weekdays >>> weekday) | (cron.weekdays << (7 - weekday))) & 0x7f;
  const byWeekday = week | (week << 7) | (week << 14) | (week << 21) | (week << 28);
  const days = cron.isEitherDay ? cron.days | byWeekday : cron.days & byWeekday;
  return days & (0x7fffffff >>> (31 - length));
}

function startOfDay(ms: number): number {
  return Math.floor(ms / dayMs) * dayMs;
}

function has(bits: Bits, n: number): boolean {
  return (((n < 32 ? bits[0] : bits[1]) >>> (n & 31)) & 1) === 1;
}

/** The lowest number of a set from `from` on; -1 when there is none. */
function lowest(bits: Bits, from: number): number {
  const low = from < 32 ? lowestBit(bits[0], from) : -1;
  if (low >= 0) return low;
  const high = lowestBit(bits[1], Math.max(0, from - 32));
  return high < 0 ? -1 : high + 32;
}

/** The lowest bit from `from` on that is set; -1 when there is none. */
function lowestBit(bits: number, from: number): number {
  if (from > 31) return -1;
  const rest = (bits >>> from) << from;
  return rest === 0 ? -1 : 31 - Math.clz32(rest & -rest);
}
