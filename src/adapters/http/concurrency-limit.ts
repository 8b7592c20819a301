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

  /** Throws `503` when all slots of `owner` are taken. */
  requireFree(owner: string): void {
    if ((this.#taken.get(owner) ?? 0) < this.#max) return;
    const message = `At most ${this.#max} ${this.#what} may be open at a time`;
    throw new PlatformError('service_unavailable', message, { retryAfter });
  }

  change(owner: string, by: 1 | -1): void {
    const count = (this.#taken.get(owner) ?? 0) + by;
    if (count > 0) this.#taken.set(owner, count);
    else this.#taken.delete(owner);
  }
}

/** A slot of a limit, and its owner. */
type Slot = readonly [limit: ConcurrencyLimit, owner: string];

/** Takes the slots until the response closes; throws `503`, and takes none, where one of them is not free. */
export function takeSlots({ raw }: FastifyReply, slots: readonly Slot[]): void {
  for (const [limit, owner] of slots) limit.requireFree(owner);
  if (raw.destroyed) return;
  for (const [limit, owner] of slots) limit.change(owner, 1);
  let areTaken = true;
  // `on` costs less than `once`; a response that is abandoned may close twice.
  raw.on('close', () => {
    if (!areTaken) return;
    areTaken = false;
    for (const [limit, owner] of slots) limit.change(owner, -1);
  });
}
