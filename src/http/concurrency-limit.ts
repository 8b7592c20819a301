/**
 * Limits how many streams or requests of one key or address this process handles at a time. A slot is
 * taken before the work and released when the response closes.
 */
import type { FastifyReply } from 'fastify';
import { PlatformError } from '../kernel/errors.ts';

/** Seconds after which a refused caller may try again. */
const retryAfter = 5;

export interface ConcurrencyLimit {
  /** Takes a slot of `owner` until the response closes; throws `503` when all of its slots are taken. */
  take(owner: string, reply: FastifyReply): void;
}

/** `what` names the limited things in a refusal: "event streams of this API key". */
export function createConcurrencyLimit(max: number, what: string): ConcurrencyLimit {
  const taken = new Map<string, number>();
  return {
    take(owner, { raw }) {
      const count = taken.get(owner) ?? 0;
      if (count >= max) {
        throw new PlatformError(
          'service_unavailable',
          `At most ${max} ${what} may be open at a time`,
          { retryAfter },
        );
      }
      if (raw.destroyed) return;
      taken.set(owner, count + 1);
      let isTaken = true;
      // `on` costs less than `once`; a response that is abandoned may close twice.
      raw.on('close', () => {
        if (!isTaken) return;
        isTaken = false;
        const left = (taken.get(owner) ?? 1) - 1;
        if (left > 0) taken.set(owner, left);
        else taken.delete(owner);
      });
    },
  };
}
