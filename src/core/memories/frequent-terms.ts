/**
 * A cache of the index expressions that match more memories than are counted. Frequent words take longest to count,
 * occur in most queries and stay frequent, so their counts are kept for a while.
 */
import type { Handle } from '../../adapters/database/database.ts';
import type { Clock } from '../../kernel/clock.ts';
import { ShortCache } from '../../kernel/short-cache.ts';
import { countEach } from './search.store.ts';

const keptMs = 10 * 60 * 1000;
/** Expressions in the cache; each takes some hundred bytes. */
const keptMax = 10_000;

/** By expression: the count at which counting stopped. */
export class FrequentTerms extends ShortCache<number> {
  constructor(clock: Clock) {
    super(clock, keptMs, keptMax);
  }
}

/** How many memories each expression matches, counted up to `most`. Reads and fills the cache `frequent`. */
export async function countsOf(
  db: Handle,
  expressions: readonly { readonly strong: string; readonly weak: string }[],
  { most, frequent }: { readonly most: number; readonly frequent: FrequentTerms },
): Promise<{ strong: number; weak: number }[]> {
  const asked = expressions.flatMap(({ strong, weak }) => [strong, weak]);
  const different = [...new Set(asked)].filter((expression) => expression !== '');
  // Copy first: cached counts may expire while the others are counted.
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
