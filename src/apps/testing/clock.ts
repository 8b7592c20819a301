/** The clock of a test: it stands still, and waits move it. */
import type { RunClock } from '../../core/executors/child/part.ts';
import { unloadMs } from '../../core/jobs/runs/run-waits.ts';
import type { Clock } from '../../kernel/clock.ts';

export class TestClock implements Clock, RunClock {
  #now: number;
  #skippedMs = 0;

  constructor(startedAt: number) {
    this.#now = startedAt;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return performance.now() + this.#skippedMs;
  }

  /** Moves to a moment, never back. What was to be unloaded before counts as not unloaded. */
  advanceTo(at: number): void {
    this.#skippedMs += Math.max(unloadMs, at - this.#now);
    this.#now = Math.max(this.#now, at);
  }

  async pause(ms: number, signal: AbortSignal): Promise<void> {
    this.advanceTo(this.#now + ms);
    // A turn of the event loop, so that a step that fails for ever does not keep the process from it.
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
  }
}
