import type { Clock } from '../../kernel/clock.ts';

/** Sweeps are a second apart. A longer pause between two of them is a stall. */
const stallMs = 3_000;

/**
 * Detects that the sweep could not run for a while, for example while the database was away. Workers
 * could not renew their leases in that time either, so for `graceMs` after a stall the sweep must leave
 * expired leases alone.
 */
export class StallDetector {
  readonly #clock: Clock;
  readonly #graceMs: number;
  #checkedAt: number;
  #graceEnds: number;

  constructor(clock: Clock, graceMs: number) {
    this.#clock = clock;
    this.#graceMs = graceMs;
    this.#checkedAt = clock.monotonic();
    this.#graceEnds = this.#checkedAt;
  }

  /**
   * True while the grace period lasts; the sweep calls this at each pass. If every pass is late, every other pass is
   * outside the grace period, so leases still expire.
   */
  isInGrace(): boolean {
    const now = this.#clock.monotonic();
    const isStall = now - this.#checkedAt > stallMs && this.#checkedAt >= this.#graceEnds;
    if (isStall) this.#graceEnds = now + this.#graceMs;
    this.#checkedAt = now;
    return now < this.#graceEnds;
  }
}
