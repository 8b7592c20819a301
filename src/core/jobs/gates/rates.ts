/**
 * Rates: how often work may start. The gate of a rate has as many places as work may start within its window. A job that has
 * passed keeps its place until its code begins; from then on the start counts for as long as the window. Pure: starts are in
 * `rate-starts.ts`.
 */

/** Steps of a window in which starts are counted: a start counts up to one step longer, and a gate has few rows. */
const stepsOfWindow = 100;

const windowOfGate = /^rate of [^=]* = (?:.* )?(\d+)$/s;

/** Milliseconds for which a start counts at a gate; null for a gate that counts what goes on. */
export function windowOf(gate: string): number | null {
  const seconds = windowOfGate.exec(gate)?.[1];
  return seconds === undefined ? null : Number(seconds) * 1_000;
}

/** Whether a gate counts starts. */
export const isRate = (gate: string): boolean => windowOf(gate) !== null;

/**
 * Time that code may take to begin after its start is recorded: a tenth of the window, and half a second at most. A
 * start counts so much longer.
 */
export function slackOf(windowMs: number): number {
  return Math.min(windowMs / 10, 500);
}

/** Until when a start counts that is made between `now` and `slackMs` later. */
export function countsUntil(now: number, slackMs: number, windowMs: number): number {
  const stepMs = windowMs / stepsOfWindow;
  return Math.ceil((now + slackMs) / stepMs) * stepMs + windowMs;
}

/** The latest moment until which a start counts that was made by `now`: one that counts longer was made by another clock. */
export function countsAtMost(now: number, slackMs: number, windowMs: number): number {
  return countsUntil(now, slackMs, windowMs) + windowMs / stepsOfWindow;
}
