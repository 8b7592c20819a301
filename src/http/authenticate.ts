/**
 * Authenticates requests and applies rate limits (specification: Authentication;
 * docs/decisions/order-of-checks.md): first the credentials, then the limit, then all other checks. Every
 * answer to an authenticated caller has the X-RateLimit headers, also a refusal.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../kernel/caller.ts';
import { PlatformError } from '../kernel/errors.ts';
import { secretCheck } from '../kernel/timing-safe.ts';
import type { ConcurrencyLimit } from './concurrency-limit.ts';
import type { RateDecision, RateLimiter } from './rate-limit.ts';
import type { WrongSecrets } from './wrong-secrets.ts';

/** The caller of a request that `apiKeyHook` admitted. */
export function callerOf(request: FastifyRequest): Caller {
  return (request as unknown as { caller: Caller }).caller;
}

/** A caller, and the limit that the request counts against. */
export interface Credentials {
  readonly caller: Caller;
  readonly limitedAs: string;
  readonly perMinute: number;
}

/** The sessions of the console, for requests without a key. */
interface SessionSource {
  /** Null without a session; throws `401` for a session that is no longer valid. */
  credentials(request: FastifyRequest): Promise<Credentials | null>;
  isAdministrator(request: FastifyRequest): Promise<boolean>;
}

/** Whether the key or the session of an admitted request is still valid. */
export async function isStillAdmitted(
  request: FastifyRequest,
  verify: (key: string) => Caller | Promise<Caller>,
  sessions: Pick<SessionSource, 'credentials'>,
): Promise<boolean> {
  const key = request.headers['x-api-key'];
  try {
    if (typeof key !== 'string') return (await sessions.credentials(request)) !== null;
    await verify(key);
    return true;
  } catch (error) {
    if (error instanceof PlatformError && error.status === 401) return false;
    throw error;
  }
}

/**
 * A hook that admits a request with a valid key or session, within its rate limit. `requests` limits how
 * many requests of one key are under way.
 */
export function apiKeyHook(
  verify: (key: string) => Caller | Promise<Caller>,
  limiter: RateLimiter,
  sessions: Pick<SessionSource, 'credentials'>,
  requests: ConcurrencyLimit,
) {
  function admit(
    request: FastifyRequest,
    reply: FastifyReply,
    caller: Caller,
    limitedAs = caller.keyId,
    perMinute = caller.rateLimit,
  ) {
    (request as unknown as { caller: Caller }).caller = caller;
    const decision = limiter.hit(limitedAs, perMinute, acceptsWork(request));
    const judge = (judged: RateDecision) => {
      enforce(reply, judged);
      requests.take(limitedAs, reply);
    };
    return decision instanceof Promise ? decision.then(judge) : judge(decision);
  }

  async function admitSession(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const credentials = await sessions.credentials(request);
    if (credentials === null) throw keyMissing();
    const { caller, limitedAs, perMinute } = credentials;
    await admit(request, reply, caller, limitedAs, perMinute);
  }

  function admitted(request: FastifyRequest, reply: FastifyReply): void | Promise<void> {
    const key = request.headers['x-api-key'];
    if (key === undefined && request.headers.cookie !== undefined) {
      return admitSession(request, reply);
    }
    if (typeof key !== 'string' || key.trim() === '') throw keyMissing();
    const caller = verify(key);
    return caller instanceof Promise
      ? caller.then((late) => admit(request, reply, late))
      : admit(request, reply, caller);
  }

  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    try {
      const late = admitted(request, reply);
      if (late instanceof Promise) late.then(() => done(), done);
      else done();
    } catch (error) {
      done(error as Error);
    }
  };
}

declare module 'fastify' {
  interface FastifyContextConfig {
    acceptsWork?: boolean;
  }
}

/** The `config` of a route that records work. It is served also while Redis cannot count requests. */
export const acceptingWork = { acceptsWork: true };

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

const adminSecretMissing = () =>
  new PlatformError(
    'authentication_required',
    'Send the admin secret as Authorization: Bearer <secret> or x-admin-secret',
  );

/** A hook that admits a request with the admin secret in either header, or with an administrator's session. */
export function adminHook(
  secret: string,
  sessions: Pick<SessionSource, 'isAdministrator'>,
  wrongSecrets: WrongSecrets,
) {
  const isSecret = secretCheck(secret);
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    const given = adminSecretsOf(request);
    if (given.length === 0) {
      const isSession =
        request.headers.cookie === undefined
          ? Promise.resolve(false)
          : sessions.isAdministrator(request);
      isSession.then((is) => done(is ? undefined : adminSecretMissing()), done);
      return;
    }
    try {
      wrongSecrets.refuse(request);
    } catch (error) {
      done(error as Error);
      return;
    }
    if (given.every((one) => one !== null && isSecret(one))) {
      done();
      return;
    }
    const wrong = new PlatformError('invalid_admin_secret', 'The admin secret is wrong');
    wrongSecrets.count(request).then(() => done(wrong), done);
  };
}

/** All secrets of the request; null for a malformed one. */
function adminSecretsOf(request: FastifyRequest): (string | null)[] {
  const { authorization } = request.headers;
  const header = request.headers['x-admin-secret'];
  const secrets: (string | null)[] = [];
  if (authorization !== undefined) {
    secrets.push(/^Bearer +(\S.*)$/i.exec(authorization)?.[1] ?? null);
  }
  if (header !== undefined) secrets.push(typeof header === 'string' ? header : null);
  if (isRepeated(request, 'authorization') || isRepeated(request, 'x-admin-secret')) {
    secrets.push(null);
  }
  return secrets;
}

/** Whether a header was sent more than once; Node joins or drops the repeated values silently. */
export function isRepeated(request: FastifyRequest, name: string): boolean {
  const { rawHeaders } = request.raw;
  let seen = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === name) seen++;
  }
  return seen > 1;
}
