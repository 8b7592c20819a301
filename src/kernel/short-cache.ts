/**
 * A cache with a short lifetime, so that the hot path does not query the database. A read that was under
 * way when `forget` was called stores nothing.
 */
import type { Clock } from './clock.ts';

export class ShortCache<V> {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #max: number;
  readonly #entries = new Map<string, { value: V; until: number }>();
  #forgotten = 0;

  /** Caches each value for `ms` milliseconds, at most `max` values; above it, the oldest is dropped. */
  constructor(clock: Clock, ms: number, max: number) {
    this.#clock = clock;
    this.#ms = ms;
    this.#max = max;
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && entry.until > this.#clock.monotonic() ? entry.value : undefined;
  }

  /**
   * Reads the value and caches it, unless `isLasting` returns false. Passes an error on without caching
   * anything.
   */
  async read(
    key: string,
    source: () => Promise<V>,
    isLasting: (value: V) => boolean = () => true,
  ): Promise<V> {
    const entries = this.#entries;
    const before = this.#forgotten;
    const value = await source();
    entries.delete(key);
    if (this.#forgotten !== before || !isLasting(value)) return value;
    if (entries.size >= this.#max) entries.delete(entries.keys().next().value as string);
    entries.set(key, { value, until: this.#clock.monotonic() + this.#ms });
    return value;
  }

  /** Removes a value; call it after a change of it is committed. */
  forget(key: string): void {
    this.#forgotten++;
    this.#entries.delete(key);
  }
}
