/**
 * Whether a child's event loop answers. Every line to the child begins with a ping. The child marks the line before it
 * handles the rest of it (line-mark.ts), and answers the ping with its next messages, at the latest when it has handled
 * the line; so a ping that is marked or answered tells that the code of its line may run, and the next one that the
 * line's first steps are done. Counts and compares; does no input or output and has no timer.
 */
export class Heartbeat {
  readonly #now: () => number;
  readonly #marked: () => number;
  #sent = 0;
  #answered = 0;
  #waitingSince = 0;
  #aliveAt = 0;

  /** `now` counts milliseconds and never goes back; `marked` is the last line that the child has begun to handle. */
  constructor(now: () => number, marked: () => number) {
    this.#now = now;
    this.#marked = marked;
  }

  /** The number that the next line will have. */
  get upcoming(): number {
    return this.#sent + 1;
  }

  /** The number of the next line's ping; called as the line is written. */
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

  /** Whether the child has begun to handle the line of the ping. */
  hasAnswered(ping: number): boolean {
    return this.#answered >= ping || (ping <= this.#sent && this.#marked() >= ping);
  }

  /** Whether no line can have waited for longer than this; unlike `silentMs` it does not read the mark. */
  hasAnsweredWithin(ms: number): boolean {
    return this.#answered === this.#sent || this.#now() - this.#waitingSince <= ms;
  }

  /** Milliseconds for which the oldest line that the child has not begun to handle has waited; 0 when none waits. */
  silentMs(): number {
    if (this.#answered === this.#sent) return 0;
    if (!this.hasAnswered(this.#sent)) return this.#now() - this.#waitingSince;
    // The next line is the first one that waits.
    this.#waitingSince = this.#now();
    return 0;
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
