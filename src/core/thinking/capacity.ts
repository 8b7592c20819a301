/**
 * A capacity of which requests take amounts, such as bytes of memory. One organization has half of it at most, and of those
 * that wait the one that has least is next, so none keeps the others waiting.
 */
import { TakenAmounts } from '../../kernel/taken-amounts.ts';
import { stopped } from './thinking-error.ts';

interface Waiting {
  readonly organizationId: string;
  readonly amount: number;
  readonly taken: PromiseWithResolvers<void>;
}

export class Capacity {
  readonly #max: number;
  readonly #share: number;
  readonly #waiting: Waiting[] = [];
  readonly #taken = new TakenAmounts();

  constructor(max: number) {
    this.#max = max;
    this.#share = Math.ceil(max / 2);
  }

  /**
   * Waits for an amount; more than an organization may have counts as all of that. Returns what gives it back. Rejects when the
   * signal aborts.
   */
  async take(wanted: number, organizationId: string, signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw stopped();
    const amount = Math.min(wanted, this.#share);
    const waiting: Waiting = { organizationId, amount, taken: Promise.withResolvers<void>() };
    const abandon = () => {
      const at = this.#waiting.indexOf(waiting);
      if (at >= 0) this.#waiting.splice(at, 1);
      waiting.taken.reject(stopped());
      this.#beginNext();
    };
    this.#waiting.push(waiting);
    signal.addEventListener('abort', abandon, { once: true });
    this.#beginNext();
    await waiting.taken.promise.finally(() => signal.removeEventListener('abort', abandon));
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken.add(organizationId, -amount);
      this.#beginNext();
    };
  }

  #beginNext(): void {
    for (;;) {
      const next = this.#next();
      if (next === undefined || this.#taken.all + next.amount > this.#max) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      this.#taken.add(next.organizationId, next.amount);
      next.taken.resolve();
    }
  }

  /** The first of the organization that has least, among the organizations that may have more. */
  #next(): Waiting | undefined {
    const firsts = new Map<string, Waiting>();
    for (const one of this.#waiting) {
      if (!firsts.has(one.organizationId)) firsts.set(one.organizationId, one);
    }
    const has = ({ organizationId }: Waiting) => this.#taken.of(organizationId);
    return [...firsts.values()]
      .filter((one) => has(one) + one.amount <= this.#share)
      .reduce<Waiting | undefined>(
        (least, one) => (least === undefined || has(one) < has(least) ? one : least),
        undefined,
      );
  }
}
