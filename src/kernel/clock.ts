/** The source of time. It is passed to all code that depends on time, so that tests can move it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds of a clock that never goes back, also when the wall clock does. */
  monotonic(): number;
}

export const dayMs = 24 * 60 * 60 * 1000;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

let lastMs = 0;
let lastText = '1970-01-01T00:00:00.000Z';
let lastSecond = 0;
/** The text of the last second, to the point. */
let secondText = '1970-01-01T00:00:00.';

/**
 * ISO 8601 in UTC with milliseconds, as the API shows every timestamp. Jobs of one batch have the same, and those of one
 * request are of one second or two: a `Date` takes ten microseconds where it is made rarely.
 */
export function timestamp(ms: number): string {
  if (ms === lastMs) return lastText;
  const second = Math.floor(ms / 1000);
  if (second !== lastSecond) {
    secondText = new Date(second * 1000).toISOString().slice(0, -4);
    lastSecond = second;
  }
  lastText = `${secondText}${String(Math.trunc(ms - second * 1000)).padStart(3, '0')}Z`;
  lastMs = ms;
  return lastText;
}

/** Like `timestamp`; null for null. */
export function timestampOrNull(ms: number | null): string | null {
  return ms === null ? null : timestamp(ms);
}
