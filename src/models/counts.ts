/** Counts of tokens as providers report them. Pure. */
import type { Json } from '../kernel/json.ts';

/** Larger counts are invalid: their sums could exceed the safe integers. */
const countMax = 1_000_000_000;

/** A count in a usage object; null when it is missing or invalid. */
export function countIn(usage: Json, name: string): number | null {
  const value = usage[name];
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= countMax
    ? (value as number)
    : null;
}

/** Merges two reports of one count. Counts only grow, and some servers end with zeros. */
export function largerOf(before: number | null, now: number | null): number | null {
  return before === null || now === null ? (before ?? now) : Math.max(before, now);
}
