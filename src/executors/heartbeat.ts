/**
 * Whether a child's event loop answers. Every line to the child begins with a ping, and the child
 * answers a ping before it looks at the rest of its line; so an answered ping tells that the code of
 * its line may run, and the next one that the line's first steps are done. Counts and compares; does
 * no input or output and has no timer.
 */
export interface Heartbeat {
  /** The number of the next line's ping; called as the line is written. */
  next(): number;
  /** The number that the next line will have. */
  readonly upcoming: number;
  /** Takes an answer; false when no such answer can come. */
  answer(ping: number): boolean;
  hasAnswered(ping: number): boolean;
  /** Milliseconds for which the oldest ping has waited for its answer; 0 when none waits. */
  silentMs(): number;
  /** Takes a sign of life that answers no ping. */
  showLife(): void;
  /** Like silentMs, but since the last sign of life, if that came later. */
  stalledMs(): number;
  /** Restarts the count of silence, because the parent itself was blocked until now. */
  forgive(): void;
}

/** `now` counts milliseconds and never goes back. */
export function createHeartbeat(now: () => number): Heartbeat {
  let sent = 0;
  let answered = 0;
  let waitingSince = 0;
  let aliveAt = 0;
  return {
    next() {
      if (answered === sent) waitingSince = now();
      sent += 1;
      return sent;
    },
    get upcoming() {
      return sent + 1;
    },
    answer(ping) {
      if (ping !== answered + 1 || ping > sent) return false;
      answered = ping;
      // The child answered just now, so its silence begins anew.
      waitingSince = now();
      return true;
    },
    hasAnswered: (ping) => answered >= ping,
    silentMs: () => (answered === sent ? 0 : now() - waitingSince),
    showLife() {
      aliveAt = now();
    },
    stalledMs: () => (answered === sent ? 0 : now() - Math.max(waitingSince, aliveAt)),
    forgive() {
      waitingSince = now();
    },
  };
}
