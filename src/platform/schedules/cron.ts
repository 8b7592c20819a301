/**
 * Five-field cron expressions in UTC (specification: Scheduled job; docs/decisions/schedules.md). The library croner
 * parses them and finds their matches. This file refuses syntax that croner accepts beyond the specification. Time is
 * passed in.
 */
import { Cron } from 'croner';
import { dayMs } from '../../kernel/clock.ts';

export type { Cron };

/** Characters of an expression, as it was given. */
export const cronCharactersMax = 256;
/** After 400 years the Gregorian calendar repeats, weekdays included. */
const cycleMs = 146_097 * dayMs;

/** An invalid expression; the message is the end of a sentence that begins with the field's name. */
export class CronError extends Error {}

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Longer steps match the first value only. */
  readonly stepMax: number;
  /** Names of the values, beginning with `min`. */
  readonly names?: readonly string[];
}

const months = ['JAN', 'FEB', 'MAR', 'APR', 'MAY', 'JUN', 'JUL', 'AUG', 'SEP', 'OCT', 'NOV', 'DEC'];
const weekdays = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT'];

const fields: readonly Field[] = [
  { name: 'minute', min: 0, max: 59, stepMax: 60 },
  { name: 'hour', min: 0, max: 23, stepMax: 24 },
  { name: 'day of month', min: 1, max: 31, stepMax: 31 },
  { name: 'month', min: 1, max: 12, stepMax: 12, names: months },
  { name: 'day of week', min: 0, max: 7, stepMax: 7, names: weekdays },
];

/** Parses an expression; throws CronError for one that is malformed or that never fires. */
export function parseCron(text: string): Cron {
  if (text.length > cronCharactersMax) {
    throw new CronError(`must be at most ${cronCharactersMax} characters`);
  }
  const given = words(text);
  if (given.length !== fields.length) {
    throw new CronError('must have five fields: minute, hour, day of month, month, day of week');
  }
  const cron = read(given);
  if (cron === null) throw faultOf(given);
  if (cron.nextRun(new Date(0)) === null) throw new CronError('never fires: no such day exists');
  return cron;
}

/** Null for a stored expression that is invalid, so that one such scheduled job does not stop the others. */
export function parseStoredCron(text: string): Cron | null {
  try {
    return parseCron(text);
  } catch (error) {
    if (error instanceof CronError) return null;
    throw error;
  }
}

/** The normal form by which expressions are compared, without regard to spaces and letter case. */
export function normalForm(text: string): string {
  return words(text).join(' ').toUpperCase();
}

const words = (text: string) => text.split(/[ \t\r\n\f\v]+/).filter((word) => word !== '');

/** Null for a malformed expression. */
function read(given: readonly string[]): Cron | null {
  const texts = fields.map((field, i) => inNumbers(field, given[i] as string));
  if (!fields.every((field, i) => isInField(field, texts[i] as string))) return null;
  // As in cron(8): a field that begins with an asterisk, even with a step, does not restrict the days.
  const domAndDow = [texts[2], texts[4]].some((text) => text?.startsWith('*'));
  try {
    return new Cron(texts.join(' '), { mode: '5-part', utcOffset: 0, domAndDow });
  } catch {
    return null;
  }
}

/** Replaces names by numbers, because croner reads names by rules of its own, and caps steps at its maximum. */
function inNumbers({ names = [], min, stepMax }: Field, text: string): string {
  return text
    .replace(/\b[a-z]+\b/gi, (name) => {
      const index = names.indexOf(name.toUpperCase());
      return index < 0 ? name : String(min + index);
    })
    .replace(/\/(\d+)/g, (_, step: string) => `/${Math.min(Number(step), stepMax)}`);
}

/** Whether a field has only allowed characters and numbers; croner alone would accept more. */
function isInField({ max }: Field, text: string): boolean {
  const values = text.replace(/\/\d+/g, '').match(/\d+/g) ?? [];
  return /^[\d*,/-]+$/.test(text) && values.every((value) => Number(value) <= max);
}

/** Names the first field that is malformed by itself. */
function faultOf(given: readonly string[]): CronError {
  const alone = (at: number) => fields.map((_, i) => (i === at ? (given[i] as string) : '*'));
  const at = fields.findIndex((_, i) => read(alone(i)) === null);
  const { name, min, max, names } = fields[at] as Field;
  const shown = JSON.stringify(given[at]?.slice(0, 40));
  const numbers = `${min}-${max}${names === undefined ? '' : ` or ${names[0]}-${names.at(-1)}`}`;
  return new CronError(
    `has ${shown} in the field ${name}, which takes ${numbers}, lists, ranges and steps`,
  );
}

/** The first moment after `ms` that matches, a whole minute in UTC. */
export function nextMatch(cron: Cron, ms: number): number {
  // croner looks no further than the year 3000.
  const cycles = Math.floor(ms / cycleMs) * cycleMs;
  const next = cron.nextRun(new Date(ms - cycles));
  if (next === null) throw new Error('The cron expression has no next match.');
  return next.getTime() + cycles;
}

/** The days of an expression: it matches as each of them begins. */
export function daysOf(cron: Cron): Cron {
  const [, , ...days] = words(cron.getPattern() as string);
  return parseCron(['0', '0', ...days].join(' '));
}
