/**
 * Limits how many streams or requests of one key, organization or address this process handles at a time. A slot is
 * taken before the work and released when the response closes.
 */
import type { FastifyReply } from 'fastify';
import { PlatformError } from '../../kernel/errors.ts';

/** Seconds after which a refused caller may try again. */
const retryAfter = 5;

export class ConcurrencyLimit {
  readonly #max: number;
  readonly #what: string;
  readonly #taken = new Map<string, number>();

  /** `what` names the limited things in a refusal: "event streams of one API key". */
  constructor(max: number, what: string) {
    this.#max = max;
    this.#what = what;
  }

  /** Takes a slot of `owner` until the response closes; throws `503` when all of its slots are taken. */
  take(owner: string, { raw }: FastifyReply): void {
    const count = this.#taken.get(owner) ?? 0;
    if (count >= this.#max) {
      const message = `At most ${this.#max} ${this.#what} may be open at a time`;
      throw new PlatformError('service_unavailable', message, { retryAfter });
    }
    if (raw.destroyed) return;
    this.#taken.set(owner, count + 1);
    let isTaken = true;
    // `on` costs less than `once`; a response that is abandoned may close twice.
    raw.on('close', () => {
      if (!isTaken) return;
      isTaken = false;
      const left = (this.#taken.get(owner) ?? 1) - 1;
      if (left > 0) this.#taken.set(owner, left);
      else this.#taken.delete(owner);
    });
  }
}
