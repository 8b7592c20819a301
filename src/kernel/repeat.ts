/**
 * A periodic task in the background. Runs at once and then at an interval, one run at a time: an interval that ends
 * during a run is skipped. `onError` gets each failure, and the task runs again.
 */
export class Repeated {
  readonly #task: () => Promise<unknown>;
  readonly #onError: (error: unknown) => void;
  readonly #timer: NodeJS.Timeout;
  #underWay: Promise<void> | null = null;

  constructor(everyMs: number, task: () => Promise<unknown>, onError: (error: unknown) => void) {
    this.#task = task;
    this.#onError = onError;
    this.#run();
    this.#timer = setInterval(() => this.#run(), everyMs).unref();
  }

  /** Stops it; resolves when a run under way has ended. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
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
