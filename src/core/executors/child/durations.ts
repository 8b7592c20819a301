/**
 * Durations and moments as skills give them. Strict, unlike the libraries for such texts, which skip what
 * they do not know: a wait of the wrong length would be found days later. Errors say what to write.
 */
import { dayMs } from '../../../kernel/clock.ts';
import { permanentError } from '../../../kernel/permanent-error.ts';
import { waitMaxMs } from '../../../kernel/step-bounds.ts';

/** How long `waitForEvent` and `approve` wait by default. */
export const defaultWaitMs = 30 * dayMs;

const units: ReadonlyMap<string, number> = new Map([
  ...unit(1, 'ms', 'millisecond', 'milliseconds'),
  ...unit(1_000, 's', 'sec', 'second', 'seconds'),
  ...unit(60_000, 'm', 'min', 'minute', 'minutes'),
  ...unit(3_600_000, 'h', 'hour', 'hours'),
  ...unit(dayMs, 'd', 'day', 'days'),
  ...unit(7 * dayMs, 'w', 'week', 'weeks'),
]);

function unit(ms: number, ...names: string[]): [string, number][] {
  return names.map((name) => [name, ms]);
}

/** One number with its unit, and the spaces after it. */
const part = /(\d{1,15}(?:\.\d{1,9})?) ?([a-z]{1,12}) */y;
/** Characters of the longest duration. */
const textMax = 100;

/** Milliseconds of a duration, rounded up. `what` names it in errors. */
export function readDuration(value: unknown, what: string): number {
  const ms = typeof value === 'string' ? parse(value.trim()) : value;
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0) {
    throw permanentError(
      `${what} must be a text such as '15m', '3d' or '1h 30m', or a number of milliseconds that is not negative; it is ${shown(value)}`,
    );
  }
  if (ms > waitMaxMs)
    throw permanentError(`${what} may be 365 days at most; it is ${shown(value)}`);
  return Math.ceil(ms);
}

/** Undefined for an invalid text. */
function parse(text: string): number | undefined {
  if (text === '' || text.length > textMax) return undefined;
  let sum = 0;
  part.lastIndex = 0;
  while (part.lastIndex < text.length) {
    const [, amount, name = ''] = part.exec(text) ?? [];
    const ms = units.get(name);
    if (ms === undefined) return undefined;
    sum += Number(amount) * ms;
  }
  return sum;
}

/** Milliseconds since the epoch of a `Date`, an ISO 8601 text or a number. */
export function readMoment(value: unknown, what: string, now: number): number {
  const at = momentOf(value);
  if (!Number.isFinite(at)) {
    throw permanentError(
      `${what} must be a valid Date, an ISO 8601 text, or milliseconds since 1970; it is ${shown(value)}`,
    );
  }
  if (at - now > waitMaxMs) throw permanentError(`${what} may be 365 days away at most`);
  return Math.ceil(at);
}

function momentOf(value: unknown): number {
  if (value instanceof Date) return value.getTime();
  if (typeof value === 'string') return Date.parse(value);
  const isInRange = typeof value === 'number' && Math.abs(value) <= 8.64e15;
  return isInRange ? value : Number.NaN;
}

function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, textMax));
  if (typeof value === 'number' || value === undefined || value === null) return `${value}`;
  if (value instanceof Date) return 'an invalid Date';
  return `a value of the type ${typeof value}`;
}
