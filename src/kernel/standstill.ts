import type { Clock } from './clock.ts';

/** A longer time between two looks is a standstill: they are a second apart. */
const standstillMs = 3_000;

/**
 * Notices that nothing could be looked at for a while, as while a store is away. Who holds a lease
 * could not renew it either, so for `graceMs` from then on nobody's is to be ended. To be called with
 * each look; the answer is whether leases are to be left alone. Looks that are always late end them
 * every other time.
 */
export function createStandstills(clock: Clock, graceMs: number): () => boolean {
  let lookedAt = clock.monotonic();
  let graceEnds = lookedAt;
  return () => {
    const now = clock.monotonic();
    if (now - lookedAt > standstillMs && lookedAt >= graceEnds) graceEnds = now + graceMs;
    lookedAt = now;
    return now < graceEnds;
  };
}
