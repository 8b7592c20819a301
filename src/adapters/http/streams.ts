/**
 * Admits event streams: limits them by key, by organization and by address, in this order, so that clients behind one
 * proxy do not lock each other out, and checks their credentials again while they are open. A stream ends when its client disconnects, when its key is revoked or expires, when its
 * session ends, and when the platform stops.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../../kernel/log.ts';
import { callerOf } from './authenticate.ts';
import { ConcurrencyLimit, takeSlots } from './concurrency-limit.ts';
import { networkOf } from './network-of.ts';
import { goneSignal } from './prefer.ts';

/** How often the credentials of an open stream are checked: a session that was signed out has no stream a second later. */
const recheckMs = 500;

/** Admits a stream or throws `503`; the returned signal aborts when the stream must end. */
export type BeginStream = (request: FastifyRequest, reply: FastifyReply) => AbortSignal;

/** The limits of all streams of a process. */
export class StreamLimits {
  readonly #ofKeys: ConcurrencyLimit;
  readonly #ofOrganizations: ConcurrencyLimit;
  readonly #ofAddresses: ConcurrencyLimit;

  constructor(perKey: number, perOrganization: number, perAddress: number) {
    this.#ofKeys = new ConcurrencyLimit(perKey, 'event streams of one API key');
    this.#ofOrganizations = new ConcurrencyLimit(
      perOrganization,
      'event streams of one organization',
    );
    this.#ofAddresses = new ConcurrencyLimit(perAddress, 'event streams of one address');
  }

  /** Counts a stream until it closes; throws `503` beyond a limit. */
  take(request: FastifyRequest, reply: FastifyReply): void {
    const { keyId, organizationId } = callerOf(request);
    takeSlots(reply, [
      [this.#ofKeys, keyId],
      [this.#ofOrganizations, organizationId],
      [this.#ofAddresses, networkOf(request.clientAddress)],
    ]);
  }
}

/** `isAdmitted` tells whether the credentials of a request are still valid. */
export function createStreams({
  limits,
  isAdmitted,
  stopping,
  log,
}: {
  limits: StreamLimits;
  isAdmitted: (request: FastifyRequest) => Promise<boolean>;
  stopping: AbortSignal;
  log: Logger;
}): BeginStream {
  return (request, reply) => {
    limits.take(request, reply);
    const gone = goneSignal(reply);
    const refused = new AbortController();
    const recheck = setInterval(() => {
      isAdmitted(request).then(
        (is) => {
          if (!is) refused.abort();
        },
        // The credentials are checked again once the database is available.
        (err: unknown) => log.debug({ err }, 'the credentials of a stream could not be read'),
      );
    }, recheckMs);
    recheck.unref();
    const signal = AbortSignal.any([gone, refused.signal, stopping]);
    const stop = () => clearInterval(recheck);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    reply.raw.once('close', stop);
    return signal;
  };
}
