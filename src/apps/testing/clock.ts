/** The clock of a scripted run: it stands still, and waits move it. */
import type { RunClock } from '../../core/executors/part.ts';

export interface ScriptedClock extends RunClock {
  /** Moves to a moment, in milliseconds since the epoch; never back. */
  advanceTo(at: number): void;
}

export function scriptedClock(start: number): ScriptedClock {
  let now = start;
  return {
    now: () => now,
    advanceTo(at) {
      now = Math.max(now, at);
    },
    async pause(ms, signal) {
      now += ms;
      // A turn of the event loop, so that a step that fails for ever does not keep the process from it.
      await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
    },
  };
}
