/**
 * Limits how many wrong secrets an address may send in a minute, to `/admin` and to the console together.
 * Above the limit, no secret of the address is compared, right or wrong, also when many arrive at once.
 * The count of this process is exact; the shared one lets each process of a cluster compare at most one
 * more.
 */
import type { FastifyRequest } from 'fastify';
import type { Clock } from '../kernel/clock.ts';
import { PlatformError } from '../kernel/errors.ts';
import type { Logger } from '../kernel/log.ts';
import { networkOf } from './network-of.ts';
import { createMemoryRateLimiter, type RateLimiter, windowMs } from './rate-limit.ts';

export interface WrongSecrets {
  /** Throws `429` when the address has sent too many; call it before comparing a secret. */
  refuse(request: FastifyRequest): void;
  /** Counts a wrong secret and writes an audit line. */
  count(request: FastifyRequest): Promise<void>;
  /** Runs `compare`, which rejects with a 401 for a wrong secret, within the limit. */
  limited<T>(request: FastifyRequest, compare: () => Promise<T>): Promise<T>;
}

export function createWrongSecrets(parts: {
  perMinute: number;
  limiter: RateLimiter;
  clock: Clock;
  log: Logger;
}): WrongSecrets {
  const { perMinute, limiter, clock, log } = parts;
  const local = createMemoryRateLimiter(clock);
  /** How many more secrets of an address may be compared, until a moment in monotonic milliseconds. */
  const allowances = new Map<string, { readonly left: number; readonly until: number }>();
  /** How many secrets of an address are being compared. */
  const comparing = new Map<string, number>();

  function allow(address: string, left: number, ms: number): void {
    const now = clock.monotonic();
    for (const [other, { until }] of allowances) if (until <= now) allowances.delete(other);
    allowances.set(address, { left, until: now + ms });
  }

  function refuse(request: FastifyRequest): void {
    const address = networkOf(request.ip);
    const { left, until } = allowances.get(address) ?? { left: perMinute, until: 0 };
    const restMs = until - clock.monotonic();
    if (restMs > 0 && left === 0) throw tooMany(Math.ceil(restMs / 1000));
    if ((comparing.get(address) ?? 0) >= (restMs > 0 ? left : perMinute)) throw tooMany(1);
  }

  async function count(request: FastifyRequest): Promise<void> {
    const { ip, method, routeOptions, id } = request;
    log.warn(
      { audit: 'wrong_secret', address: ip, method, route: routeOptions.url, request_id: id },
      'a wrong secret was sent',
    );
    const address = networkOf(ip);
    const own = await local.hit(address, perMinute);
    allow(address, own.remaining, own.remaining === 0 ? own.retryAfter * 1000 : windowMs);
    const all = await limiter.hit(`wrong-secret:${address}`, perMinute, true);
    if (all.allowed) return;
    allow(address, 0, all.retryAfter * 1000);
    throw tooMany(all.retryAfter);
  }

  return {
    refuse,
    count,
    async limited(request, compare) {
      refuse(request);
      const address = networkOf(request.ip);
      comparing.set(address, (comparing.get(address) ?? 0) + 1);
      try {
        return await compare();
      } catch (error) {
        if (error instanceof PlatformError && error.status === 401) await count(request);
        throw error;
      } finally {
        const left = (comparing.get(address) ?? 1) - 1;
        if (left > 0) comparing.set(address, left);
        else comparing.delete(address);
      }
    },
  };
}

const tooMany = (retryAfter: number) =>
  new PlatformError('rate_limit_exceeded', 'Too many wrong secrets: wait a moment', { retryAfter });
