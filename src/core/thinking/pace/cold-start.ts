/**
 * A process begins to call a provider of which it knows no limit with a few calls at once, and then with twice as many
 * each second: where the provider takes fewer, it refuses a few instead of hundreds. In memory alone.
 */

const atOnce = 10;
/** Calls of the first second after these. */
const perSecond = 20;
/** After so long without a call the next ones begin anew. */
const coldAfterMs = 600_000;

export class ColdStart {
  #beganAt = 0;
  #lastAt = Number.NEGATIVE_INFINITY;
  #calls = 0;

  /** Milliseconds until a call may begin; `now` is monotonic. */
  delay(now: number): number {
    if (now - this.#lastAt > coldAfterMs) {
      this.#beganAt = now;
      this.#calls = 0;
    }
    this.#lastAt = now;
    this.#calls += 1;
    return Math.max(0, this.#beganAt + delayOf(this.#calls) - now);
  }
}

/** When the n-th call begins: with `atOnce + perSecond · (2ᵗ − 1) / ln 2` calls after t seconds. */
function delayOf(n: number): number {
  return 1_000 * Math.log2(1 + (Math.max(0, n - atOnce) * Math.LN2) / perSecond);
}
