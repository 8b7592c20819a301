/**
 * Shares of what this process does at a time: at most so many streams or requests of one key or
 * address. A share is taken before the work and given back when its response closes.
 */
import type { FastifyReply } from 'fastify';
import { PlatformError } from '../kernel/errors.ts';

/** Seconds after which a refused caller may try again. */
const retryAfter = 5;

export interface Shares {
  /** Takes a share of `owner` until the response closes; `429` when it has all of its shares. */
  take(owner: string, reply: FastifyReply): void;
}

/** `what` names the shares in a refusal: "event streams of this API key". */
export function createShares(max: number, what: string): Shares {
  const taken = new Map<string, number>();
  return {
    take(owner, { raw }) {
      const count = taken.get(owner) ?? 0;
      if (count >= max) {
        throw new PlatformError(
          'rate_limit_exceeded',
          `At most ${max} ${what} may be open at a time`,
          { retryAfter },
        );
      }
      if (raw.destroyed) return;
      taken.set(owner, count + 1);
      raw.once('close', () => {
        const left = (taken.get(owner) ?? 1) - 1;
        if (left > 0) taken.set(owner, left);
        else taken.delete(owner);
      });
    },
  };
}
