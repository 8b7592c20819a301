/**
 * Admits requests with an API key or a session of the console, within the limits of the key and the organization
 * (specification: Authentication; docs/decisions/order-of-checks.md): first the credentials, then the limits. Every
 * answer to an authenticated caller has the X-RateLimit headers, also a refusal.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  isRepeated,
  type SessionSource,
  setCaller,
  setLimit,
  setSession,
} from '../../adapters/http/authenticate.ts';
import { type ConcurrencyLimit, takeSlots } from '../../adapters/http/concurrency-limit.ts';
import { countByKey } from '../../adapters/http/connections.ts';
import type { RateDecision, RateLimiter } from '../../adapters/http/rate-limit.ts';
import { isWrongSecret, type WrongSecrets } from '../../adapters/http/wrong-secrets.ts';
import type { Caller } from '../../kernel/caller.ts';
import { PlatformError } from '../../kernel/errors.ts';
import type { ApiKeys } from './api-keys.ts';

interface RequestLimits {
  readonly rate: RateLimiter;
  /** How many requests of one key and of one organization may be under way. */
  readonly ofKeys: ConcurrencyLimit;
  readonly ofOrganizations: ConcurrencyLimit;
}

export class Admission {
  readonly #apiKeys: ApiKeys;
  readonly #limits: RequestLimits;
  readonly #wrongSecrets: WrongSecrets;
  readonly #sessions: SessionSource;
  readonly #acceptsBearer: boolean;

  /** With `acceptsBearer` a key may be sent as a bearer token, as clients of other protocols do. */
  constructor(
    apiKeys: ApiKeys,
    limits: RequestLimits,
    wrongSecrets: WrongSecrets,
    sessions: SessionSource,
    acceptsBearer = false,
  ) {
    this.#apiKeys = apiKeys;
    this.#limits = limits;
    this.#wrongSecrets = wrongSecrets;
    this.#sessions = sessions;
    this.#acceptsBearer = acceptsBearer;
  }

  /** The hook that admits a request with a valid key or session. */
  readonly hook = (
    request: FastifyRequest,
    reply: FastifyReply,
    done: (error?: Error) => void,
  ): void => {
    const refuse = (error: Error) => {
      if (isWrongSecret(error) && this.#keyOf(request) !== undefined) {
        this.#wrongSecrets.audit(request);
      }
      done(error);
    };
    try {
      const late = this.#authenticate(request, reply);
      if (late instanceof Promise) late.then(() => done(), refuse);
      else done();
    } catch (error) {
      refuse(error as Error);
    }
  };

  /** Whether the key or the session of an admitted request is still valid. */
  async isStillValid(request: FastifyRequest): Promise<boolean> {
    const key = this.#keyOf(request);
    try {
      if (typeof key !== 'string') return (await this.#sessions.credentials(request)) !== null;
      await this.#apiKeys.verify(key);
      return true;
    } catch (error) {
      if (error instanceof PlatformError && error.status === 401) return false;
      throw error;
    }
  }

  #keyOf(request: FastifyRequest): string | readonly string[] | undefined {
    const { authorization } = request.headers;
    const key = request.headers['x-api-key'];
    if (!this.#acceptsBearer || key !== undefined || authorization === undefined) return key;
    // No key, like two of them in x-api-key.
    if (isRepeated(request, 'authorization')) return 'repeated';
    return /^Bearer +(\S.*)$/i.exec(authorization)?.[1] ?? '';
  }

  /** A promise only where the key, the session or the limit is not decided in this process's memory. */
  #authenticate(request: FastifyRequest, reply: FastifyReply): void | Promise<void> {
    const key = this.#keyOf(request);
    if (key === undefined && request.headers.cookie !== undefined) {
      return this.#admitSession(request, reply);
    }
    if (typeof key !== 'string' || key.trim() === '') throw keyMissing();
    const caller = this.#apiKeys.verify(key);
    return caller instanceof Promise
      ? caller.then((late) => this.#admit(request, reply, late))
      : this.#admit(request, reply, caller);
  }

  async #admitSession(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const credentials = await this.#sessions.credentials(request);
    if (credentials === null) throw keyMissing();
    const { caller, limitedAs, perMinute, sessionId } = credentials;
    setSession(request, sessionId);
    setLimit(request, credentials);
    await this.#admit(request, reply, caller, limitedAs, perMinute);
  }

  #admit(
    request: FastifyRequest,
    reply: FastifyReply,
    caller: Caller,
    limitedAs = caller.keyId,
    perMinute = caller.rateLimit,
  ): void | Promise<void> {
    const { rate, ofKeys, ofOrganizations } = this.#limits;
    setCaller(request, caller);
    const decision = rate.hit(limitedAs, perMinute, () => acceptsWork(request));
    const apply = (decided: RateDecision) => {
      enforce(reply, decided);
      takeSlots(reply, [
        [ofKeys, limitedAs],
        [ofOrganizations, caller.organizationId],
      ]);
      countByKey(request.raw, reply.raw);
    };
    return decision instanceof Promise ? decision.then(apply) : apply(decision);
  }
}

/** Fastify makes a new object at each access to the options of a route. */
function acceptsWork({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.config.acceptsWork === true;
}

const keyMissing = () =>
  new PlatformError('authentication_required', 'Send your API key in the x-api-key header');

/** Sets the headers of a decision; throws `429` for a refused hit. */
function enforce(reply: FastifyReply, decision: RateDecision): void {
  reply.header('x-ratelimit-limit', decision.limit);
  reply.header('x-ratelimit-remaining', decision.remaining);
  reply.header('x-ratelimit-reset', decision.reset);
  if (decision.allowed) return;
  throw new PlatformError(
    'rate_limit_exceeded',
    `${decision.limit} requests per minute are allowed`,
    { retryAfter: decision.retryAfter },
  );
}
