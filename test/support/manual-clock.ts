import type { Clock } from '../../src/kernel/clock.ts';

/** A clock that stands still until it is told to move. */
export interface ManualClock extends Clock {
  /** Lets time pass: both the wall clock and the monotonic one. */
  advance(ms: number): void;
  /** Moves the wall clock alone, as an administrator or NTP does. */
  jumpTo(epochMs: number): void;
}

/** Starts at the moment given, as an ISO 8601 string. */
export function manualClock(start = '2026-11-20T12:00:00.000Z'): ManualClock {
  let now = Date.parse(start);
  let monotonic = 0;
  return {
    now: () => now,
    monotonic: () => monotonic,
    advance(ms) {
      now += ms;
      monotonic += ms;
    },
    jumpTo(epochMs) {
      now = epochMs;
    },
  };
}
