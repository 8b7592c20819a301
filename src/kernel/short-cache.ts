/**
 * What was read a moment ago and is believed for a moment more, so that the hot path need not ask
 * the database. What is forgotten here is not brought back by a read that was under way meanwhile.
 */
import type { Clock } from './clock.ts';

export interface ShortCache<V> {
  get(key: string): V | undefined;
  /**
   * Reads and believes the answer, unless `isLasting` says no; an error is passed on and nothing is
   * kept.
   */
  read(key: string, source: () => Promise<V>, isLasting?: (value: V) => boolean): Promise<V>;
  /** To be called once a change of what stands behind the key is committed. */
  forget(key: string): void;
}

/** Believes each value for `ms` milliseconds and keeps at most `max`; the oldest goes first. */
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
