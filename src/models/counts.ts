/** Counts of tokens as providers report them. Pure. */
import type { Json } from './json.ts';

/** A count above it is no count: sums of such would pass what numbers can hold. */
const countMax = 1_000_000_000;

/** Null for what is no count. */
export function countIn(usage: Json, name: string): number | null {
  const value = usage[name];
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= countMax
    ? (value as number)
    : null;
}

/** Of a count that was told again: counts only grow, and some servers end with zeros. */
export function largerOf(before: number | null, now: number | null): number | null {
  return before === null || now === null ? (before ?? now) : Math.max(before, now);
}
