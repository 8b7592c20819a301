import type { Clock } from '../../kernel/clock.ts';

/** Sweeps are a second apart. A longer pause between two of them is a stall. */
const stallMs = 3_000;

/**
 * Detects that the sweep could not run for a while, for example while the database was away. Workers
 * could not renew their leases in that time either, so for `graceMs` after a stall the sweep must leave
 * expired leases alone. The sweep calls the returned function at each pass: true while the grace period
 * lasts. If every pass is late, every other pass is outside the grace period, so leases still expire.
 */
export function createStallDetector(clock: Clock, graceMs: number): () => boolean {
  let calledAt = clock.monotonic();
  let graceEnds = calledAt;
  return () => {
    const now = clock.monotonic();
    if (now - calledAt > stallMs && calledAt >= graceEnds) graceEnds = now + graceMs;
    calledAt = now;
    return now < graceEnds;
  };
}
