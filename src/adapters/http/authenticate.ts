/** The caller of an admitted request, and the hook that admits administrators (specification: Authentication). */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../../kernel/caller.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { secretCheck } from '../../kernel/timing-safe.ts';
import type { WrongSecrets } from './wrong-secrets.ts';

/** The caller of an admitted request. */
export function callerOf(request: FastifyRequest): Caller {
  return (request as unknown as { caller: Caller }).caller;
}

/** The session of the console to which an admitted request belongs; null for one that came with a key. */
export function sessionIdOf(request: FastifyRequest): string | null {
  return (request as unknown as { sessionId?: string }).sessionId ?? null;
}

export function setCaller(request: FastifyRequest, caller: Caller): void {
  (request as unknown as { caller: Caller }).caller = caller;
}

export function setSession(request: FastifyRequest, sessionId: string): void {
  (request as unknown as { sessionId: string }).sessionId = sessionId;
}

/** The limit that a request counts against: that of its key, unless its session has another. */
interface RequestLimit {
  readonly limitedAs: string;
  readonly perMinute: number;
}

export function setLimit(request: FastifyRequest, limit: RequestLimit): void {
  (request as unknown as { limit: RequestLimit }).limit = limit;
}

/** The limit that an admitted request counts against. */
export function limitOf(request: FastifyRequest): RequestLimit {
  const { keyId, rateLimit } = callerOf(request);
  const { limit } = request as unknown as { limit?: RequestLimit };
  return limit ?? { limitedAs: keyId, perMinute: rateLimit };
}

/** The caller of a session, and the limit that the request counts against. */
export interface Credentials extends RequestLimit {
  readonly caller: Caller;
  readonly sessionId: string;
}

/** The sessions of the console, for requests without a key. */
export interface SessionSource {
  /** Null without a session; throws `401` for a session that is no longer valid. */
  credentials(request: FastifyRequest): Promise<Credentials | null>;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    acceptsWork?: boolean;
  }
}

/** The `config` of a route that records work. It is served also while Redis cannot count requests. */
export const acceptingWork = { acceptsWork: true };

const adminSecretMissing = () =>
  new PlatformError(
    'authentication_required',
    'Send the admin secret as Authorization: Bearer <secret> or x-admin-secret',
  );

/** A hook that admits a request with the admin secret in either header, or with an administrator's session. */
export function adminHook(
  secret: string,
  isAdministrator: (request: FastifyRequest) => Promise<boolean>,
  wrongSecrets: WrongSecrets,
) {
  const isSecret = secretCheck(secret);
  const admit = async (request: FastifyRequest): Promise<void> => {
    const given = adminSecretsOf(request);
    if (given.length === 0) {
      const hasCookie = request.headers.cookie !== undefined;
      if (hasCookie && (await isAdministrator(request))) return;
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
