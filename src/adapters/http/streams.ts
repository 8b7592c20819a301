/**
 * Admits event streams: limits them by key, by organization and by address, in this order, so that clients behind one
 * proxy do not lock each other out. A stream ends when its client disconnects, when its key is revoked or expires, when
 * its session ends, and when the platform stops.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Bus } from '../../kernel/bus.ts';
import type { Logger } from '../../kernel/log.ts';
import { callerOf, sessionIdOf } from './authenticate.ts';
import { ConcurrencyLimit, takeSlots } from './concurrency-limit.ts';
import { networkOf } from './network-of.ts';
import { goneSignal } from './prefer.ts';

/**
 * How often the credentials of an open stream are checked: for a key that expires, and where no message of their end
 * came. Each stream reads the database at most so often.
 */
const recheckMs = 2_000;

interface StreamLimits {
  readonly perKey: number;
  readonly perOrganization: number;
  readonly perAddress: number;
}

/** All streams of a process. */
export class OpenStreams {
  readonly #ofKeys: ConcurrencyLimit;
  readonly #ofOrganizations: ConcurrencyLimit;
  readonly #ofAddresses: ConcurrencyLimit;
  /** What ends a stream, by its key and by its session. */
  readonly #byCredentials = new Map<string, Set<AbortController>>();
  readonly #bus: Bus | null;

  /** `bus` is null for a single process. */
  constructor({ perKey, perOrganization, perAddress }: StreamLimits, bus: Bus | null) {
    this.#ofKeys = new ConcurrencyLimit(perKey, 'event streams of one API key');
    this.#ofOrganizations = new ConcurrencyLimit(
      perOrganization,
      'event streams of one organization',
    );
    this.#ofAddresses = new ConcurrencyLimit(perAddress, 'event streams of one address');
    this.#bus = bus;
    bus?.listen('ended-credentials', (id) => this.#endHere(id));
  }

  /** Counts a stream until it closes; throws `503` beyond a limit. The controller is aborted when its credentials end. */
  begin(request: FastifyRequest, reply: FastifyReply): AbortController {
    const { keyId, organizationId } = callerOf(request);
    takeSlots(reply, [
      [this.#ofKeys, keyId],
      [this.#ofOrganizations, organizationId],
      [this.#ofAddresses, networkOf(request.clientAddress)],
    ]);
    const ended = new AbortController();
    if (reply.raw.destroyed) return ended;
    const credentials = [keyId, sessionIdOf(request)].filter((id) => id !== null);
    for (const id of credentials) {
      const open = this.#byCredentials.get(id) ?? new Set();
      this.#byCredentials.set(id, open.add(ended));
    }
    reply.raw.once('close', () => {
      for (const id of credentials) {
        const open = this.#byCredentials.get(id);
        open?.delete(ended);
        if (open?.size === 0) this.#byCredentials.delete(id);
      }
    });
    return ended;
  }

  /** Ends the streams of a revoked key or of a session that was signed out, in all processes. */
  endThoseOf(credentials: string): void {
    this.#endHere(credentials);
    this.#bus?.send('ended-credentials', credentials);
  }

  #endHere(credentials: string): void {
    for (const open of this.#byCredentials.get(credentials) ?? []) open.abort();
  }
}

/** The streams of the requests that one hook admits. */
export class StreamAdmission {
  readonly #streams: OpenStreams;
  readonly #isAdmitted: (request: FastifyRequest) => Promise<boolean>;
  /** Aborts when the platform stops. */
  readonly stopping: AbortSignal;
  readonly #log: Logger;

  /** `isAdmitted` decides whether the credentials of a request are still valid. */
  constructor(
    streams: OpenStreams,
    isAdmitted: (request: FastifyRequest) => Promise<boolean>,
    stopping: AbortSignal,
    log: Logger,
  ) {
    this.#streams = streams;
    this.#isAdmitted = isAdmitted;
    this.stopping = stopping;
    this.#log = log;
  }

  /** Admits a stream or throws `503`; the returned signal aborts when the stream must end. */
  begin(request: FastifyRequest, reply: FastifyReply): AbortSignal {
    const refused = this.#streams.begin(request, reply);
    const recheck = setInterval(() => {
      this.#isAdmitted(request).then(
        (is) => {
          if (!is) refused.abort();
        },
        // The credentials are checked again once the database is available.
        (err: unknown) => this.#log.debug({ err }, 'the credentials of a stream could not be read'),
      );
    }, recheckMs);
    recheck.unref();
    const signal = AbortSignal.any([goneSignal(reply), refused.signal, this.stopping]);
    const stop = () => clearInterval(recheck);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    return signal;
  }
}
