/**
 * A process calls a provider of which it knows no limit a few times at once, and then twice as often each second: where the
 * provider takes fewer, it refuses a few instead of hundreds. Time without calls takes back what was reached, so that a
 * burst after it begins anew: the calls of a second are at most twice those of the second before. In memory alone.
 */

const atOnce = 10;
/** Calls of the first second after these. */
const perSecond = 20;

export class ColdStart {
  /** Calls since the beginning, less what time without calls took back. */
  #level = 0;
  /** The moment of the last call; monotonic, in milliseconds. */
  #at = Number.NEGATIVE_INFINITY;

  /** Milliseconds until a call may begin; `now` is monotonic. */
  delay(now: number): number {
    const idleSeconds = Math.max(0, now - this.#at) / 1_000;
    const level = Math.max(0, levelAt(secondsOf(this.#level) - idleSeconds));
    this.#level = level + 1;
    const stepMs = 1_000 * (Math.max(0, secondsOf(this.#level)) - Math.max(0, secondsOf(level)));
    this.#at = Math.max(now, this.#at) + stepMs;
    return this.#at - now;
  }
}

/** After how many seconds of calls as fast as they may come a level is reached; those at once take back idle time. */
function secondsOf(level: number): number {
  const more = level - atOnce;
  return more < 0 ? more / perSecond : Math.log2(1 + (more * Math.LN2) / perSecond);
}

function levelAt(seconds: number): number {
  return atOnce + perSecond * (seconds < 0 ? seconds : (2 ** seconds - 1) / Math.LN2);
}
