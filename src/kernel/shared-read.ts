/**
 * Reads a slow value for callers that cannot wait long. A caller gets the current value when reading is
 * quick, else the last value if it is recent enough, else null. Simultaneous callers share one read, so a
 * slow source is read once at a time.
 */
import type { Clock } from './clock.ts';
import { withDeadline } from './with-deadline.ts';

/** The longest that a caller waits for a new value. */
const answerWaitMs = 500;
/** Older values are not returned. */
const keptMs = 60_000;
/** After this time a read counts as failed, and another one may begin. */
const givenUpMs = 30_000;

export class SharedRead<T> {
  readonly #clock: Clock;
  readonly #read: () => Promise<T>;
  #underWay: { readonly startedAt: number; readonly done: Promise<void> } | null = null;
  #last: { readonly value: T; readonly readAt: number } | null = null;

  constructor(clock: Clock, read: () => Promise<T>) {
    this.#clock = clock;
    this.#read = read;
  }

  /** The value, or null when it is not known. Never rejects. */
  async get(): Promise<T | null> {
    const now = this.#clock.monotonic();
    if (this.#underWay === null || now - this.#underWay.startedAt > givenUpMs) this.#begin(now);
    await withDeadline(this.#underWay?.done, answerWaitMs);
    const last = this.#last;
    return last !== null && this.#clock.monotonic() - last.readAt <= keptMs ? last.value : null;
  }

  #begin(startedAt: number): void {
    const done = this.#read()
      .then(
        (value) => {
          const isNewer = this.#last === null || this.#last.readAt <= startedAt;
          if (isNewer) this.#last = { value, readAt: startedAt };
        },
        // After a failed read the value is unknown; an old value would hide the failure.
        () => {
          this.#last = null;
        },
      )
      .finally(() => {
        if (this.#underWay === one) this.#underWay = null;
      });
    const one = { startedAt, done };
    this.#underWay = one;
  }
}
