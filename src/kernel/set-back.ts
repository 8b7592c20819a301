import type { Clock } from './clock.ts';

/** The clock counts as set back when it has lost more than this against the monotonic clock. */
export const setBackMs = 2_000;

/**
 * Detects that the wall clock was set back. Call the returned function before each query for future
 * times. It returns true at the first call, because the clock may have been ahead before this process
 * started, and at each call after the clock was set back.
 */
export function createSetBackWatch(clock: Clock): () => boolean {
  /** The largest difference from the monotonic clock since the wall clock was last set back. */
  let offset: number | null = null;
  return () => {
    const current = clock.now() - clock.monotonic();
    if (offset !== null && current >= offset - setBackMs) {
      offset = Math.max(offset, current);
      return false;
    }
    offset = current;
    return true;
  };
}

/**
 * The end of an operation that began at `beganAt`: `now`, or, when the clock was set back meanwhile, the
 * beginning plus the measured duration `tookMs`.
 */
export function endOf(beganAt: number | null, now: number, tookMs = 0): number {
  return beganAt === null || now >= beganAt ? now : beganAt + Math.round(tookMs);
}
