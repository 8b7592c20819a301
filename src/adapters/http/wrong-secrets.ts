/**
 * Writes an audit line for wrong secrets: admin secrets, secrets of a sign-in, and API keys. It refuses no request: a
 * wrong secret is always 401 and the right one always passes, however many wrong ones came from an address before.
 */
import type { FastifyRequest } from 'fastify';
import type { Clock } from '../../kernel/clock.ts';
import { PlatformError } from '../../kernel/errors.ts';
import type { Logger } from '../../kernel/log.ts';
import { networkOf } from './network-of.ts';

/** The time in which an address gets one line. */
const windowMs = 60_000;
/** Addresses that get a line in that time; the wrong secrets of further ones are counted in `service_errors_total` alone. */
const addressesMax = 10_000;

interface Seen {
  readonly until: number;
  /** Wrong secrets since the line. */
  unlogged: number;
}

/** Whether an error is the refusal of a secret that was compared. */
export function isWrongSecret(error: unknown): boolean {
  const code = error instanceof PlatformError ? error.code : undefined;
  return code === 'invalid_api_key' || code === 'invalid_admin_secret';
}

export class WrongSecrets {
  readonly #clock: Clock;
  readonly #log: Logger;
  /** In the order of `until`. */
  readonly #seen = new Map<string, Seen>();

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Writes the line of a request with a wrong secret, at most one a minute and address. */
  audit(request: FastifyRequest): void {
    const now = this.#clock.monotonic();
    const network = networkOf(request.clientAddress);
    const seen = this.#seen.get(network);
    if (seen !== undefined && seen.until > now) {
      seen.unlogged++;
      return;
    }
    this.#seen.delete(network);
    if (this.#seen.size >= addressesMax) this.#forget(now);
    if (this.#seen.size >= addressesMax) return;
    this.#seen.set(network, { until: now + windowMs, unlogged: 0 });
    this.#log.warn(
      {
        audit: 'wrong_secret',
        address: request.clientAddress,
        method: request.method,
        route: request.is404 ? 'unmatched' : request.routeOptions.url,
        request_id: request.id,
        ...(seen !== undefined && seen.unlogged > 0 ? { unlogged: seen.unlogged } : {}),
      },
      'a wrong secret was sent',
    );
  }

  #forget(now: number): void {
    for (const [network, { until }] of this.#seen) {
      if (until > now) return;
      this.#seen.delete(network);
    }
  }
}
