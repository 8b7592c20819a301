/**
 * Admits event streams: limits them by key and by address, and checks their credentials again while they
 * are open. A stream ends when its client disconnects, when its key is revoked or expires, when its
 * session ends, and when the platform stops.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../kernel/log.ts';
import { callerOf } from './authenticate.ts';
import { createConcurrencyLimit } from './concurrency-limit.ts';
import { networkOf } from './network-of.ts';
import { goneSignal } from './prefer.ts';

/** How often the credentials of an open stream are checked. */
const recheckMs = 2_000;

/** Admits a stream or throws `503`; the returned signal aborts when the stream must end. */
export type BeginStream = (request: FastifyRequest, reply: FastifyReply) => AbortSignal;

/** `isAdmitted` tells whether the credentials of a request are still valid. */
export function createStreams({
  perKey,
  perAddress,
  isAdmitted,
  stopping,
  log,
}: {
  perKey: number;
  perAddress: number;
  isAdmitted: (request: FastifyRequest) => Promise<boolean>;
  stopping: AbortSignal;
  log: Logger;
}): BeginStream {
  const ofKeys = createConcurrencyLimit(perKey, 'event streams of one API key');
  const ofAddresses = createConcurrencyLimit(perAddress, 'event streams of one address');

  return (request, reply) => {
    ofKeys.take(callerOf(request).keyId, reply);
    ofAddresses.take(networkOf(request.ip), reply);
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
