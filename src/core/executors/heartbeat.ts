/**
 * Whether a child's event loop answers. The pool pings a child while it has runs, and the child answers a ping at once
 * when it has handled the messages before it. So an answered ping says that the code of all runs before it has begun,
 * and one without an answer that the code of no run after it has. Counts and compares; does no input or output and has
 * no timer.
 */
export class Heartbeat {
  readonly #now: () => number;
  #sent = 0;
  #answered = 0;
  #waitingSince = 0;
  #aliveAt = 0;

  /** `now` counts milliseconds and never goes back. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** The number of the last ping; 0 before the first. */
  get sent(): number {
    return this.#sent;
  }

  /** The number of the next ping; called as it is written. */
  next(): number {
    if (this.#answered === this.#sent) this.#waitingSince = this.#now();
    this.#sent += 1;
    return this.#sent;
  }

  /** Takes an answer; false when no such answer can come. */
  answer(ping: number): boolean {
    if (ping !== this.#answered + 1 || ping > this.#sent) return false;
    this.#answered = ping;
    // The child answered just now, so its silence begins anew.
    this.#waitingSince = this.#now();
    return true;
  }

  hasAnswered(ping: number): boolean {
    return this.#answered >= ping;
  }

  /** Milliseconds for which the oldest ping without an answer has waited; 0 when none waits. */
  silentMs(): number {
    return this.#answered === this.#sent ? 0 : this.#now() - this.#waitingSince;
  }

  /** Takes a sign of life that answers no ping. */
  showLife(): void {
    this.#aliveAt = this.#now();
  }

  /** Like silentMs, but since the last sign of life, if that came later. */
  stalledMs(): number {
    return this.silentMs() === 0 ? 0 : this.#now() - Math.max(this.#waitingSince, this.#aliveAt);
  }

  /** Restarts the count of silence, because the parent itself was blocked until now. */
  forgive(): void {
    this.#waitingSince = this.#now();
  }
}
