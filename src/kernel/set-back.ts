import type { Clock } from './clock.ts';

/** The clock was set back when it has lost more than this against the time that only grows. */
export const setBackMs = 2_000;

/**
 * Notices that the wall clock was set back. To be called with each look at moments that lie ahead: the
 * answer is true at the first look, since the clock may have been ahead before this process started, and
 * at each look before which it was set back.
 */
export function createSetBackWatch(clock: Clock): () => boolean {
  /** How far the clock was ahead of the time that only grows, at most since it was last set back. */
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
 * When something that began at a moment ended: `now`, or, where the clock was set back meanwhile, as long
 * after its beginning as this process measured; as if at once where no process measured it.
 */
export function endOf(beganAt: number | null, now: number, tookMs = 0): number {
  return beganAt === null || now >= beganAt ? now : beganAt + Math.round(tookMs);
}
