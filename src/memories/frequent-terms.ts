/**
 * Which expressions of the index find more memories than are counted. To count a frequent word takes longest, every
 * question has the same ones, and they stay frequent, so they are counted once in a while.
 */
import type { Handle } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import { createShortCache, type ShortCache } from '../kernel/short-cache.ts';
import { countEach } from './search.store.ts';

const keptMs = 10 * 60 * 1000;
/** An expression is a word with its forms under one or two owners: some hundred bytes. */
const keptMax = 10_000;

/** The count, up to which was counted, by expression. */
export type FrequentTerms = Pick<ShortCache<number>, 'get' | 'read'>;

export function createFrequentTerms(clock: Clock): FrequentTerms {
  return createShortCache(clock, keptMs, keptMax);
}

/** How many memories each of the expressions finds, counted up to `most`; those of `frequent` are known. */
export async function countsOf(
  db: Handle,
  expressions: readonly { readonly strong: string; readonly weak: string }[],
  { most, frequent }: { readonly most: number; readonly frequent: FrequentTerms },
): Promise<{ strong: number; weak: number }[]> {
  const asked = expressions.flatMap(({ strong, weak }) => [strong, weak]);
  const different = [...new Set(asked)].filter((expression) => expression !== '');
  // Copied first: what is known may expire while the others are counted.
  const byExpression = new Map(different.map((one) => [one, frequent.get(one)]));
  const unknown = different.filter((expression) => byExpression.get(expression) === undefined);
  const counts = unknown.length === 0 ? [] : await countEach(db, unknown, most);
  for (const [i, expression] of unknown.entries()) {
    const count = counts[i] ?? 0;
    byExpression.set(expression, count);
    if (count >= most) await frequent.read(expression, async () => count);
  }
  const countOf = (expression: string) => byExpression.get(expression) ?? 0;
  return expressions.map(({ strong, weak }) => ({ strong: countOf(strong), weak: countOf(weak) }));
}
