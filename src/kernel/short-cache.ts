/**
 * A cache with a short lifetime, so that the hot path does not query the database. A read that was under
 * way when `forget` was called stores nothing.
 */
import type { Clock } from './clock.ts';

export interface ShortCache<V> {
  get(key: string): V | undefined;
  /**
   * Reads the value and caches it, unless `isLasting` returns false. Passes an error on without caching
   * anything.
   */
  read(key: string, source: () => Promise<V>, isLasting?: (value: V) => boolean): Promise<V>;
  /** Removes a value; call it after a change of it is committed. */
  forget(key: string): void;
}

/** Caches each value for `ms` milliseconds, at most `max` values; above it, the oldest is dropped. */
export function createShortCache<V>(clock: Clock, ms: number, max: number): ShortCache<V> {
  const entries = new Map<string, { value: V; until: number }>();
  let forgotten = 0;
  return {
    get(key) {
      const entry = entries.get(key);
      return entry !== undefined && entry.until > clock.monotonic() ? entry.value : undefined;
    },
    async read(key, source, isLasting = () => true) {
      const before = forgotten;
      const value = await source();
      entries.delete(key);
      if (forgotten !== before || !isLasting(value)) return value;
      if (entries.size >= max) entries.delete(entries.keys().next().value as string);
      entries.set(key, { value, until: clock.monotonic() + ms });
      return value;
    },
    forget(key) {
      forgotten++;
      entries.delete(key);
    },
  };
}
