/**
 * Sessions of the console: a browser gets one for the admin secret or an API key. A session is a signed
 * cookie that scripts cannot read. It is not stored, so every process of a cluster can verify it. The
 * cookie holds the owner and the expiry; each request checks whether the key is still valid, and whether the user has
 * signed out (ended-sessions.ts).
 *
 * @fastify/session would store each session. @fastify/secure-session needs its key when it is registered; this
 * one comes from the database, which may be away then.
 *
 * The signing key is derived from random bytes in the database, so that a cookie does not help to guess
 * the admin secret, and from the admin secret, so that a new admin secret ends all sessions.
 *
 * A session applies only to a request with the console's own header. Another site cannot make a browser
 * send this header without a CORS preflight, which the platform never allows.
 *
 * A request to the API names the organization of its page. All tabs of a browser share the cookie, so
 * another tab may have replaced the session: a request for an organization that the session does not
 * cover is refused.
 */
import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { parseCookie, stringifySetCookie } from 'cookie';
import type { Database } from '../../adapters/database/database.ts';
import type { Credentials } from '../../adapters/http/authenticate.ts';
import type { ApiKeys } from '../../core/api-keys/api-keys.ts';
import type { Context } from '../../core/context/context.ts';
import type { Caller } from '../../kernel/caller.ts';
import { timestamp } from '../../kernel/clock.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { newId } from '../../kernel/ids.ts';
import { lazily } from '../../kernel/lazy.ts';
import { isSame, secretCheck } from '../../kernel/timing-safe.ts';
import { sessionSecret } from './console.store.ts';
import { EndedSessions } from './ended-sessions.ts';

const cookiePrefix = 'skillwright_session_';
const headerName = 'x-skillwright-console';
const organizationHeaderName = 'x-skillwright-organization';
const hour = 3_600_000;
const lifetimeMs = 12 * hour;
/** The longest time until the user must sign in again, including all renewals. */
const longestMs = 7 * 24 * hour;
/** A session with less time left is renewed, so that an active user is not signed out. */
const renewedMs = 6 * hour;
/** GET requests of a session per minute; they do not count against the limit of its key. */
const readsPerMinute = 1_200;

/** The administrator, who acts in the organization that each request names, or the holder of a key. */
type Holder =
  | { readonly kind: 'administrator' }
  | { readonly kind: 'api_key'; readonly api_key_id: string };

type Session = Holder & {
  /** The same after each renewal; names the session in records of what was done in it. */
  readonly id: string;
  readonly signed_in_at: number;
  readonly expires_at: number;
};

/** The parts of a request that sessions use. */
export interface SessionRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

interface SessionKeys {
  readonly signing: Buffer;
  readonly cookieName: string;
}

export class Sessions {
  readonly #context: Context;
  readonly #apiKeys: ApiKeys;
  readonly #isAdminSecret: (secret: string) => boolean;
  /** Reads the secret at the first use; after a failure, the next use reads it again. */
  readonly #readKeys: () => Promise<SessionKeys>;
  readonly #ended: EndedSessions;

  constructor(context: Context, apiKeys: ApiKeys, adminSecret: string) {
    const { database, clock } = context;
    this.#context = context;
    this.#apiKeys = apiKeys;
    this.#isAdminSecret = secretCheck(adminSecret);
    this.#readKeys = lazily(() => deriveKeys(database, adminSecret));
    this.#ended = new EndedSessions(database, clock);
  }

  /** Opens a session for the admin secret or an API key; `401` for anything else. */
  async open(request: SessionRequest, secret: string) {
    const holder = await this.#holderOf(secret);
    return await this.#begin(request, holder, newId(), this.#context.clock.now());
  }

  /**
   * The session of a request, with a new cookie when it expires soon; null without a session, or when
   * its key is revoked or expired.
   */
  async read(request: SessionRequest) {
    const session = await this.#sessionOf(request);
    const content = session === null ? null : await this.#bodyOf(session);
    if (session === null || content === null) return null;
    const { id, signed_in_at, expires_at, ...holder } = session;
    const isLate = expires_at - this.#context.clock.now() < renewedMs;
    return isLate
      ? await this.#begin(request, holder, id, signed_in_at)
      : { cookie: null, session: content };
  }

  /**
   * Ends the session of a request, with every cookie that it ever got. The cookie that ends it in its browser, and the id
   * of the session; null where the request had none.
   */
  async end(request: SessionRequest) {
    const session = await this.#sessionOf(request);
    // No cookie of the session expires later, because it is not renewed any more.
    if (session !== null) await this.#ended.add(session.id, this.#context.clock.now() + lifetimeMs);
    return { cookie: await this.#cookieOf(request, '', 0), sessionId: session?.id ?? null };
  }

  async isAdministrator(request: SessionRequest): Promise<boolean> {
    return (await this.#sessionOf(request))?.kind === 'administrator';
  }

  /**
   * The caller of a request without a key; null without a session, `401` for an organization that the
   * session does not cover. Only requests that change something count against the limit of the key.
   */
  async credentials(request: SessionRequest): Promise<Credentials | null> {
    const session = await this.#sessionOf(request);
    if (session === null) return null;
    const caller = await requestCallerOf(this.#apiKeys, session, request);
    const sessionId = session.id;
    const isReading = request.method === 'GET' || request.method === 'HEAD';
    return isReading
      ? { caller, limitedAs: `console:${caller.keyId}`, perMinute: readsPerMinute, sessionId }
      : { caller, limitedAs: caller.keyId, perMinute: caller.rateLimit, sessionId };
  }

  async #signatureOf(value: string): Promise<string> {
    const { signing } = await this.#readKeys();
    return createHmac('sha256', signing).update(value).digest('base64url');
  }

  /** The session of a request; null without one, or when it has expired. */
  async #sessionOf({ headers }: SessionRequest): Promise<Session | null> {
    const { cookie, [headerName]: marked } = headers;
    if (cookie === undefined || marked === undefined) return null;
    const { cookieName } = await this.#readKeys();
    const [value = '', signature = ''] = parseCookie(String(cookie))[cookieName]?.split('.') ?? [];
    if (value === '' || !isSame(signature, await this.#signatureOf(value))) return null;
    const session = JSON.parse(Buffer.from(value, 'base64url').toString()) as Session;
    const now = this.#context.clock.now();
    if (session.expires_at <= now || session.expires_at > now + lifetimeMs) return null;
    return (await this.#ended.has(session.id)) ? null : session;
  }

  /** Opens a session, or renews one that was opened at `signedInAt`, up to the longest time. */
  async #begin(request: SessionRequest, holder: Holder, id: string, signedInAt: number) {
    const { clock } = this.#context;
    const expires_at = Math.min(clock.now() + lifetimeMs, signedInAt + longestMs);
    const session: Session = { ...holder, id, signed_in_at: signedInAt, expires_at };
    const value = Buffer.from(JSON.stringify(session)).toString('base64url');
    const signature = await this.#signatureOf(value);
    const seconds = Math.ceil((expires_at - clock.now()) / 1000);
    const content = await this.#bodyOf(session);
    if (content === null) throw keyIsOver();
    return {
      cookie: await this.#cookieOf(request, `${value}.${signature}`, seconds),
      session: content,
      sessionId: id,
    };
  }

  /** A session as the console gets it; null when its key is revoked or expired. */
  async #bodyOf(session: Session) {
    const expires_at = timestamp(session.expires_at);
    const permissions = this.#context.config.apiKeyPermissions;
    if (session.kind === 'administrator') {
      return {
        kind: session.kind,
        api_key_id: null,
        client_name: 'Administrator',
        scopes: ['*'],
        permissions,
        organizations: await this.#apiKeys.organizations(),
        expires_at,
      };
    }
    const caller = await this.#apiKeys.callerById(session.api_key_id);
    if (caller === undefined) return null;
    return {
      kind: session.kind,
      api_key_id: caller.keyId,
      client_name: caller.clientName,
      scopes: caller.scopes,
      permissions,
      organizations: [caller.organizationId],
      expires_at,
    };
  }

  /** The holder of a secret; throws `401` for a wrong one. */
  async #holderOf(secret: string): Promise<Holder> {
    if (this.#isAdminSecret(secret)) return { kind: 'administrator' };
    try {
      return { kind: 'api_key', api_key_id: (await this.#apiKeys.verify(secret)).keyId };
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== 'invalid_api_key') throw error;
      throw new PlatformError(
        'invalid_api_key',
        'This is neither the admin secret nor a valid API key',
      );
    }
  }

  async #cookieOf({ headers }: SessionRequest, value: string, maxAge: number): Promise<string> {
    // A load balancer that terminates TLS sets this header. Over plain HTTP, a secure cookie is not sent back.
    const [protocol = ''] = String(headers['x-forwarded-proto'] ?? '').split(',');
    const secure = protocol.trim().toLowerCase() === 'https';
    const attributes = { httpOnly: true, sameSite: 'strict', path: '/', secure } as const;
    const { cookieName } = await this.#readKeys();
    return stringifySetCookie({ name: cookieName, value, ...attributes, maxAge });
  }
}

async function deriveKeys(database: Database, adminSecret: string): Promise<SessionKeys> {
  const secret = Buffer.from(await sessionSecret(database, randomBytes(32).toString('hex')), 'hex');
  const derived = (salt: string, use: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', secret, salt, use, bytes));
  // Cookies do not depend on the port, so two platforms on one machine need different names.
  const cookieName = cookiePrefix + derived('', 'console cookie', 4).toString('hex');
  return { signing: derived(adminSecret, 'console session', 32), cookieName };
}

/** The caller of a session in the organization that the request names; throws `401` if it has no access. */
async function requestCallerOf(
  apiKeys: ApiKeys,
  session: Session,
  { headers }: SessionRequest,
): Promise<Caller> {
  const organizationId = headers[organizationHeaderName];
  const refusal = (message: string) => new PlatformError('authentication_required', message);
  if (typeof organizationId !== 'string' || organizationId === '') {
    throw refusal(
      `Name the organization in the header ${organizationHeaderName}: load the page again`,
    );
  }
  if (session.kind === 'administrator') {
    const caller = await apiKeys.consoleCaller(organizationId);
    if (caller !== undefined) return caller;
    throw refusal(`There is no organization “${organizationId}”`);
  }
  const caller = await apiKeys.callerById(session.api_key_id);
  if (caller === undefined) throw keyIsOver();
  if (caller.organizationId === organizationId) return caller;
  throw refusal(
    `The request is for the organization “${organizationId}”, and the session is signed in to “${caller.organizationId}”`,
  );
}

function keyIsOver(): PlatformError {
  return new PlatformError('invalid_api_key', 'The API key of this session is invalid or revoked');
}
