/** A number of places that are taken in the order of the requests, such as bytes of memory. */
import { stopped } from './thinking-error.ts';

interface Waiting {
  readonly places: number;
  readonly taken: PromiseWithResolvers<void>;
}

export class Places {
  readonly #max: number;
  readonly #waiting: Waiting[] = [];
  #taken = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Waits for places; more than there are count as all. Returns what gives them back. Rejects when the signal aborts. */
  async take(wanted: number, signal: AbortSignal): Promise<() => void> {
    const places = Math.min(wanted, this.#max);
    if (signal.aborted) throw stopped();
    if (this.#waiting.length > 0 || this.#taken + places > this.#max) {
      await this.#wait(places, signal);
    } else this.#taken += places;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken -= places;
      this.#beginNext();
    };
  }

  async #wait(places: number, signal: AbortSignal): Promise<void> {
    const taken = Promise.withResolvers<void>();
    const waiting: Waiting = { places, taken };
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
      if (next === undefined || this.#taken + next.places > this.#max) return;
      this.#waiting.shift();
      this.#taken += next.places;
      next.taken.resolve();
    }
  }
}
