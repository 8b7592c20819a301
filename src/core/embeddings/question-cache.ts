/** A cache of vectors of queries: the pages of a search and repeated attempts have the same query. */
import { createHash } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';

const entriesMax = 500;
const keptMs = 10 * 60_000;

/** Keys are stored as digests, so that no query text stays in memory. */
export class QuestionCache {
  readonly #clock: Clock;
  readonly #entries = new Map<string, { readonly vector: Float32Array; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get(key: string): Float32Array | undefined {
    const entry = this.#entries.get(digestOf(key));
    return entry !== undefined && entry.until > this.#clock.monotonic() ? entry.vector : undefined;
  }

  set(key: string, vector: Float32Array): void {
    const entries = this.#entries;
    if (entries.size >= entriesMax) entries.delete(entries.keys().next().value as string);
    entries.set(digestOf(key), { vector, until: this.#clock.monotonic() + keptMs });
  }
}

const digestOf = (key: string) => createHash('sha256').update(key).digest('base64');
