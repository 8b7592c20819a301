/**
 * Authenticates requests and applies rate limits (specification: Authentication;
 * docs/decisions/order-of-checks.md): first the credentials, then the limit, then all other checks. Every
 * answer to an authenticated caller has the X-RateLimit headers, also a refusal.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../kernel/caller.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { secretCheck } from '../../kernel/timing-safe.ts';
import { type ConcurrencyLimit, takeSlots } from './concurrency-limit.ts';
import { countByKey } from './connections.ts';
import type { RateDecision, RateLimiter } from './rate-limit.ts';
import { isWrongSecret, type WrongSecrets } from './wrong-secrets.ts';

/** The caller of a request that `apiKeyHook` admitted. */
export function callerOf(request: FastifyRequest): Caller {
  return (request as unknown as { caller: Caller }).caller;
}

/** The session of the console to which an admitted request belongs; null for one that came with a key. */
export function sessionIdOf(request: FastifyRequest): string | null {
  return (request as unknown as { sessionId?: string }).sessionId ?? null;
}

/** The caller of a session, and the limit that the request counts against. */
export interface Credentials {
  readonly caller: Caller;
  readonly limitedAs: string;
  readonly perMinute: number;
  readonly sessionId: string;
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
  keyOf: NonNullable<ApiKeyAdmission['keyOf']> = keyInHeader,
): Promise<boolean> {
  const key = keyOf(request);
  try {
    if (typeof key !== 'string') return (await sessions.credentials(request)) !== null;
    await verify(key);
    return true;
  } catch (error) {
    if (error instanceof PlatformError && error.status === 401) return false;
    throw error;
  }
}

/** Admits requests with a key or a session. Higher rooms verify keys and sessions. */
export interface ApiKeyAdmission {
  /** The caller of a valid key; throws `401` for any other. */
  verify(key: string): Caller | Promise<Caller>;
  readonly sessions: Pick<SessionSource, 'credentials'>;
  readonly limits: {
    readonly rate: RateLimiter;
    /** How many requests of one key and of one organization may be under way. */
    readonly ofKeys: ConcurrencyLimit;
    readonly ofOrganizations: ConcurrencyLimit;
  };
  readonly wrongSecrets: WrongSecrets;
  /** The key of a request; that in the header x-api-key when left out. */
  keyOf?(request: FastifyRequest): string | readonly string[] | undefined;
}

/** A hook that admits a request with a valid key or session, within its rate limit. */
export function apiKeyHook(deps: ApiKeyAdmission) {
  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    const refuse = (error: Error) => {
      if (isWrongSecret(error) && keySentWith(deps, request) !== undefined)
        deps.wrongSecrets.audit(request);
      done(error);
    };
    try {
      const late = authenticate(deps, request, reply);
      if (late instanceof Promise) late.then(() => done(), refuse);
      else done();
    } catch (error) {
      refuse(error as Error);
    }
  };
}

function keyInHeader({ headers }: FastifyRequest) {
  return headers['x-api-key'];
}

/** The key in either header; clients of other protocols send it as a bearer token. */
export function keyOrBearer(request: FastifyRequest): string | readonly string[] | undefined {
  const { authorization } = request.headers;
  const key = keyInHeader(request);
  if (key !== undefined || authorization === undefined) return key;
  return /^Bearer +(\S.*)$/i.exec(authorization)?.[1] ?? '';
}

function keySentWith({ keyOf = keyInHeader }: ApiKeyAdmission, request: FastifyRequest) {
  return keyOf(request);
}

/** A promise only where the key, the session or the limit is not decided in this process's memory. */
function authenticate(
  deps: ApiKeyAdmission,
  request: FastifyRequest,
  reply: FastifyReply,
): void | Promise<void> {
  const key = keySentWith(deps, request);
  if (key === undefined && request.headers.cookie !== undefined) {
    return admitSession(deps, request, reply);
  }
  if (typeof key !== 'string' || key.trim() === '') throw keyMissing();
  const caller = deps.verify(key);
  return caller instanceof Promise
    ? caller.then((late) => admit(deps, request, reply, late))
    : admit(deps, request, reply, caller);
}

async function admitSession(
  deps: ApiKeyAdmission,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const credentials = await deps.sessions.credentials(request);
  if (credentials === null) throw keyMissing();
  const { caller, limitedAs, perMinute, sessionId } = credentials;
  (request as unknown as { sessionId: string }).sessionId = sessionId;
  await admit(deps, request, reply, caller, limitedAs, perMinute);
}

function admit(
  { limits }: ApiKeyAdmission,
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller,
  limitedAs = caller.keyId,
  perMinute = caller.rateLimit,
): void | Promise<void> {
  (request as unknown as { caller: Caller }).caller = caller;
  const decision = limits.rate.hit(limitedAs, perMinute, () => acceptsWork(request));
  const apply = (decided: RateDecision) => {
    enforce(reply, decided);
    takeSlots(reply, [
      [limits.ofKeys, limitedAs],
      [limits.ofOrganizations, caller.organizationId],
    ]);
    countByKey(request.raw, reply.raw);
  };
  return decision instanceof Promise ? decision.then(apply) : apply(decision);
}

declare module 'fastify' {
  interface FastifyContextConfig {
    acceptsWork?: boolean;
  }
}

/** The `config` of a route that records work. It is served also while Redis cannot count requests. */
export const acceptingWork = { acceptsWork: true };

/** Fastify makes a new object for each look at the options of a route. */
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
  const admit = async (request: FastifyRequest): Promise<void> => {
    const given = adminSecretsOf(request);
    if (given.length === 0) {
      const hasCookie = request.headers.cookie !== undefined;
      if (hasCookie && (await sessions.isAdministrator(request))) return;
      throw adminSecretMissing();
    }
    if (given.every((one) => one !== null && isSecret(one))) return;
    wrongSecrets.audit(request);
    throw new PlatformError('invalid_admin_secret', 'The admin secret is wrong');
  };
  return (request: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void => {
    admit(request).then(() => done(), done);
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
