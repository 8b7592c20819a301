/** A cache of vectors of queries: the pages of a search and repeated attempts have the same query. */
import { createHash } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';

const entriesMax = 500;
const keptMs = 10 * 60_000;

export type QuestionCache = ReturnType<typeof createQuestionCache>;

/** Keys are digests, so that no query text stays in memory. */
export function createQuestionCache(clock: Clock) {
  const entries = new Map<string, { readonly vector: Float32Array; readonly until: number }>();
  const digest = (key: string) => createHash('sha256').update(key).digest('base64');
  return {
    get(key: string): Float32Array | undefined {
      const entry = entries.get(digest(key));
      return entry !== undefined && entry.until > clock.monotonic() ? entry.vector : undefined;
    },
    set(key: string, vector: Float32Array): void {
      if (entries.size >= entriesMax) entries.delete(entries.keys().next().value as string);
      entries.set(digest(key), { vector, until: clock.monotonic() + keptMs });
    },
  };
}
