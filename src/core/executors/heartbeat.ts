/**
 * Whether a child's event loop answers. Every line to the child begins with a ping. The child marks the line before it
 * handles the rest of it (line-mark.ts), and answers the ping with its next messages, at the latest when it has handled
 * the line; so a ping that is marked or answered tells that the code of its line may run, and the next one that the
 * line's first steps are done. Counts and compares; does no input or output and has no timer.
 */
export interface Heartbeat {
  /** The number of the next line's ping; called as the line is written. */
  next(): number;
  /** The number that the next line will have. */
  readonly upcoming: number;
  /** Takes an answer; false when no such answer can come. */
  answer(ping: number): boolean;
  /** Whether the child has begun to handle the line of the ping. */
  hasAnswered(ping: number): boolean;
  /** Whether no line can have waited for longer than this; unlike `silentMs` it does not look at the mark. */
  hasAnsweredWithin(ms: number): boolean;
  /** Milliseconds for which the oldest line that the child has not begun to handle has waited; 0 when none waits. */
  silentMs(): number;
  /** Takes a sign of life that answers no ping. */
  showLife(): void;
  /** Like silentMs, but since the last sign of life, if that came later. */
  stalledMs(): number;
  /** Restarts the count of silence, because the parent itself was blocked until now. */
  forgive(): void;
}

/** `now` counts milliseconds and never goes back; `marked` is the last line that the child has begun to handle. */
export function createHeartbeat(now: () => number, marked: () => number): Heartbeat {
  let sent = 0;
  let answered = 0;
  let waitingSince = 0;
  let aliveAt = 0;
  const hasAnswered = (ping: number) => answered >= ping || (ping <= sent && marked() >= ping);
  const silentMs = (): number => {
    if (answered === sent) return 0;
    if (!hasAnswered(sent)) return now() - waitingSince;
    // The next line is the first one that waits.
    waitingSince = now();
    return 0;
  };
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
    hasAnswered,
    hasAnsweredWithin: (ms) => answered === sent || now() - waitingSince <= ms,
    silentMs,
    showLife() {
      aliveAt = now();
    },
    stalledMs: () => (silentMs() === 0 ? 0 : now() - Math.max(waitingSince, aliveAt)),
    forgive() {
      waitingSince = now();
    },
  };
}
