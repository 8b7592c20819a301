/** Counts of tokens as providers report them. Pure. */
import type { Json } from '../../kernel/json.ts';
import type { Usage } from './model.ts';

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

/** The usage of an answer that has parts: counts of 0 are of servers that do not count. */
export function withoutZeros(usage: Usage): Usage {
  const { prompt, completion } = usage;
  return prompt === 0 || completion === 0
    ? { ...usage, prompt: prompt || null, completion: completion || null }
    : usage;
}

/** The largest of the reports of one count under several names; null without any. */
export function largestIn(holders: readonly (readonly [Json | null, string])[]): number | null {
  return holders.reduce<number | null>(
    (largest, [holder, name]) => largerOf(largest, holder === null ? null : countIn(holder, name)),
    null,
  );
}

/** Parts of the counts of a call; null where they were not reported. */
interface Parts {
  readonly cacheRead: number | null;
  readonly cacheWrite: number | null;
  readonly reasoning: number | null;
}

/** Merges two reports of the parts of a usage. A part is never larger than what it is a part of. */
export function withParts(
  counts: Pick<Usage, 'prompt' | 'completion'>,
  before: Usage,
  now: Parts,
): Usage {
  const { prompt, completion } = counts;
  const part = (earlier: number | undefined, later: number | null, whole: number | null) => {
    const count = largerOf(earlier ?? null, later);
    return count === null || whole === null ? count : Math.min(count, whole);
  };
  const cacheRead = part(before.cacheRead, now.cacheRead, prompt);
  const unread = prompt === null ? null : prompt - (cacheRead ?? 0);
  const cacheWrite = part(before.cacheWrite, now.cacheWrite, unread);
  const reasoning = part(before.reasoning, now.reasoning, completion);
  return {
    prompt,
    completion,
    ...(cacheRead === null ? {} : { cacheRead }),
    ...(cacheWrite === null ? {} : { cacheWrite }),
    ...(reasoning === null ? {} : { reasoning }),
  };
}
