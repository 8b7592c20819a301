/**
 * What every event stream is held by: shares of its key and of its address, and credentials that are
 * looked at again while it is open. A stream ends when its client goes, when its key is revoked or
 * expires, when its session ends, and when the platform stops.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../kernel/log.ts';
import { callerOf } from './authenticate.ts';
import { goneSignal } from './prefer.ts';
import { createShares } from './shares.ts';

/** How often the credentials of an open stream are looked at. */
const recheckMs = 2_000;

/** Admits a stream or throws `429`; its signal aborts when the stream has to end. */
export type BeginStream = (request: FastifyRequest, reply: FastifyReply) => AbortSignal;

/** `isAdmitted` tells whether the credentials of a request are still good. */
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
  const ofKeys = createShares(perKey, 'event streams of one API key');
  const ofAddresses = createShares(perAddress, 'event streams of one address');

  return (request, reply) => {
    ofKeys.take(callerOf(request).keyId, reply);
    ofAddresses.take(request.ip, reply);
    const gone = goneSignal(reply);
    const refused = new AbortController();
    const recheck = setInterval(() => {
      isAdmitted(request).then(
        (is) => {
          if (!is) refused.abort();
        },
        // The credentials are judged again once the database can be asked.
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
