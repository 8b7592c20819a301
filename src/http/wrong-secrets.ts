/**
 * Limits how many wrong secrets an address may send in a minute, to `/admin` and to the console together.
 * Above the limit, no secret of the address is compared, right or wrong, also when many arrive at once.
 * The count of this process is exact; the shared one lets each process of a cluster compare at most one
 * more.
 */
import { isIPv6 } from 'node:net';
import type { FastifyRequest } from 'fastify';
import type { Clock } from '../kernel/clock.ts';
import { PlatformError } from '../kernel/errors.ts';
import type { Logger } from '../kernel/log.ts';
import { createMemoryRateLimiter, type RateLimiter } from './rate-limit.ts';

/** Groups of an IPv6 address that belong to one subscriber: 64 bits. */
const networkGroups = 4;

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
  /** Monotonic milliseconds until which an address is refused. */
  const refusedUntil = new Map<string, number>();
  /** How many secrets of an address are being compared. */
  const comparing = new Map<string, number>();

  function refuseUntil(address: string, seconds: number): void {
    const now = clock.monotonic();
    for (const [other, until] of refusedUntil) if (until <= now) refusedUntil.delete(other);
    refusedUntil.set(address, now + seconds * 1000);
  }

  function refuse(request: FastifyRequest): void {
    const address = networkOf(request.ip);
    const left = (refusedUntil.get(address) ?? 0) - clock.monotonic();
    if (left > 0) throw tooMany(Math.ceil(left / 1000));
    if ((comparing.get(address) ?? 0) >= perMinute) throw tooMany(1);
  }

  async function count(request: FastifyRequest): Promise<void> {
    const { ip, method, routeOptions, id } = request;
    log.warn(
      { audit: 'wrong_secret', address: ip, method, route: routeOptions.url, request_id: id },
      'a wrong secret was sent',
    );
    const address = networkOf(ip);
    const own = await local.hit(address, perMinute);
    if (own.remaining === 0) refuseUntil(address, own.retryAfter);
    const all = await limiter.hit(`wrong-secret:${address}`, perMinute, true);
    if (all.allowed) return;
    refuseUntil(address, all.retryAfter);
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

/** The unit of counting: an IPv4 address, or the /64 network of an IPv6 address. */
function networkOf(address: string): string {
  if (!isIPv6(address) || address.toLowerCase().startsWith('::ffff:')) return address;
  const [before = '', after] = address.split('::');
  const groups = before === '' ? [] : before.split(':');
  const behind = after === undefined || after === '' ? [] : after.split(':');
  const zeros = Array.from({ length: 8 - groups.length - behind.length }, () => '0');
  return [...groups, ...zeros, ...behind].slice(0, networkGroups).join(':');
}
