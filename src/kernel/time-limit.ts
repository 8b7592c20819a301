/** A time limit that can be stopped for a while. It stands still until it is resumed. */
export class TimeLimit {
  readonly #controller = new AbortController();
  #leftMs: number;
  #runningSince: number | null = null;
  #timer: NodeJS.Timeout | undefined;

  /** The signal aborts after so many milliseconds of running. */
  constructor(ms: number) {
    this.#leftMs = ms;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  pause(): void {
    clearTimeout(this.#timer);
    if (this.#runningSince !== null) this.#leftMs -= performance.now() - this.#runningSince;
    this.#runningSince = null;
  }

  resume(): void {
    if (this.#runningSince !== null) return;
    this.#runningSince = performance.now();
    this.#timer = setTimeout(
      () => this.#controller.abort(new Error('the time limit')),
      Math.max(0, this.#leftMs),
    );
  }
}
