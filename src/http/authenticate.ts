/**
 * Who is asking, and may they ask so often (specification: Authentication; docs/decisions/order-of-checks.md): credentials
 * before limits, limits before everything else. A caller who is known gets the X-RateLimit headers
 * on every answer, refusals included.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../kernel/caller.ts';
import { PlatformError } from '../kernel/errors.ts';
import { secretCheck } from '../kernel/same.ts';
import type { RateDecision, RateLimiter } from './rate-limit.ts';
import type { Shares } from './shares.ts';
import type { WrongSecrets } from './wrong-secrets.ts';

/** The caller of a request that `apiKeyHook` admitted. */
export function callerOf(request: FastifyRequest): Caller {
  return (request as unknown as { caller: Caller }).caller;
}

/** A caller, and the limit that a request of theirs counts against. */
export interface Credentials {
  readonly caller: Caller;
  readonly limitedAs: string;
  readonly perMinute: number;
}

/** Where a request without a key may belong: a session of the console. */
interface SessionSource {
  /** Null when it belongs to none; `401` for one that may no more. */
  credentials(request: FastifyRequest): Promise<Credentials | null>;
  isAdministrator(request: FastifyRequest): Promise<boolean>;
}

/** Whether a request that `apiKeyHook` admitted would still be: its key or its session is good. */
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
 * A hook that admits a request with a valid key, or of a session, within its limit. `requests` bounds
 * how many of one key are under way.
 */
export function apiKeyHook(
  verify: (key: string) => Caller | Promise<Caller>,
  limiter: RateLimiter,
  sessions: Pick<SessionSource, 'credentials'>,
  requests: Shares,
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

/** What a route says of itself in its `config`: that it records work, which no lost counter may refuse. */
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

/** A hook that admits a request with the admin secret, in either of its two headers, or of the administrator's session. */
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

/** Every secret that was sent; null for a credential that cannot be one. */
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

/** Whether a header came more than once; Node joins or drops the others silently. */
export function isRepeated(request: FastifyRequest, name: string): boolean {
  const { rawHeaders } = request.raw;
  let seen = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() === name) seen++;
  }
  return seen > 1;
}
