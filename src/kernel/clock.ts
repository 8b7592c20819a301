/** Time, passed in to whatever decides by it, so that tests move it and never sleep. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Milliseconds that only grow, whatever happens to the wall clock. */
  monotonic(): number;
}

export const dayMs = 24 * 60 * 60 * 1000;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

/** ISO 8601 in UTC with milliseconds, as the API shows every timestamp. */
export function timestamp(ms: number): string {
  return new Date(ms).toISOString();
}

/** As `timestamp`, null for null. */
export function timestampOrNull(ms: number | null): string | null {
  return ms === null ? null : timestamp(ms);
}
