/**
 * A periodic task in the background. Runs at once, or after `afterMs`, and then at an interval, one run at a time: an
 * interval that ends during a run is skipped. `onError` gets each failure, and the task runs again.
 */
export class Repeated {
  readonly #task: () => Promise<unknown>;
  readonly #onError: (error: unknown) => void;
  #timer: NodeJS.Timeout;
  #underWay: Promise<void> | null = null;

  constructor(
    everyMs: number,
    task: () => Promise<unknown>,
    onError: (error: unknown) => void,
    afterMs = 0,
  ) {
    this.#task = task;
    this.#onError = onError;
    const begin = () => {
      this.#run();
      return setInterval(() => this.#run(), everyMs).unref();
    };
    const beginLater = () => {
      this.#timer = begin();
    };
    this.#timer = afterMs === 0 ? begin() : setTimeout(beginLater, afterMs).unref();
  }

  /** Stops it; resolves when a run under way has ended. */
  async stop(): Promise<void> {
    // Of either kind.
    clearTimeout(this.#timer);
    await this.#underWay;
  }

  #run(): void {
    this.#underWay ??= this.#attempt().finally(() => {
      this.#underWay = null;
    });
  }

  async #attempt(): Promise<void> {
    try {
      await this.#task();
    } catch (error) {
      this.#onError(error);
    }
  }
}
