/** The timers of a pool. Both stand still while nothing runs. */
import type { Clock } from '../../kernel/clock.ts';

/** Repeats a check until it returns false. */
export class Watch {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #check: (wasAbsent: boolean) => boolean;
  #timer: NodeJS.Timeout | undefined;

  /** `check` is called every `ms`; `wasAbsent` says that this process itself was blocked since the last call. */
  constructor(clock: Clock, ms: number, check: (wasAbsent: boolean) => boolean) {
    this.#clock = clock;
    this.#ms = ms;
    this.#check = check;
  }

  begin(): void {
    if (this.#timer === undefined) this.#schedule();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(): void {
    const dueAt = this.#clock.monotonic() + this.#ms;
    this.#timer = setTimeout(() => {
      // This process itself was blocked, so the children's silence is not their fault.
      const wasAbsent = this.#clock.monotonic() - dueAt > this.#ms;
      // Messages that the children have already sent are read first.
      setImmediate(() => {
        if (this.#timer === undefined) return;
        this.#timer = undefined;
        if (this.#check(wasAbsent)) this.#schedule();
      });
    }, this.#ms);
  }
}

/** Calls `onIdle` at the latest moment that `begin` has named. Calling `begin` often is cheap. */
export class IdleTimer {
  readonly #clock: Clock;
  readonly #onIdle: () => void;
  #timer: NodeJS.Timeout | undefined;
  #idleAt = 0;

  constructor(clock: Clock, onIdle: () => void) {
    this.#clock = clock;
    this.#onIdle = onIdle;
  }

  begin(ms: number): void {
    this.#idleAt = Math.max(this.#idleAt, this.#clock.monotonic() + ms);
    if (this.#timer === undefined) this.#schedule(ms);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #schedule(wait: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      const left = this.#idleAt - this.#clock.monotonic();
      if (left > 1) this.#schedule(left);
      else this.#onIdle();
    }, wait).unref();
  }
}
