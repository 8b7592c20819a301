/** A capacity of which requests take amounts in their order, such as bytes of memory. */
import { stopped } from './thinking-error.ts';

interface Waiting {
  readonly amount: number;
  readonly taken: PromiseWithResolvers<void>;
}

export class Capacity {
  readonly #max: number;
  readonly #waiting: Waiting[] = [];
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Waits for an amount; more than there is counts as all. Returns what gives it back. Rejects when the signal aborts. */
  async take(wanted: number, signal: AbortSignal): Promise<() => void> {
    const amount = Math.min(wanted, this.#max);
    if (signal.aborted) throw stopped();
    if (this.#waiting.length > 0 || this.#taken + amount > this.#max) {
      await this.#wait(amount, signal);
    } else this.#taken += amount;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken -= amount;
      this.#beginNext();
    };
  }

  async #wait(amount: number, signal: AbortSignal): Promise<void> {
    const taken = Promise.withResolvers<void>();
    const waiting: Waiting = { amount, taken };
    const abandon = () => {
      const at = this.#waiting.indexOf(waiting);
      if (at >= 0) this.#waiting.splice(at, 1);
      taken.reject(stopped());
      this.#beginNext();
    };
    this.#waiting.push(waiting);
    signal.addEventListener('abort', abandon, { once: true });
    await taken.promise.finally(() => signal.removeEventListener('abort', abandon));
  }

  #beginNext(): void {
    for (;;) {
      const next = this.#waiting[0];
      if (next === undefined || this.#taken + next.amount > this.#max) return;
      this.#waiting.shift();
      this.#taken += next.amount;
      next.taken.resolve();
    }
  }
}
