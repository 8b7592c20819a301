/**
 * Sessions of the console: what a browser is given for the admin secret or an API key. A session is a
 * cookie that scripts cannot read, signed and kept nowhere, so that every process of a cluster knows it.
 * It says whose it is and until when; whether that key may still do anything is asked each time.
 *
 * It is signed with random bytes that the database keeps, so that no cookie helps to guess the admin
 * secret; that one is part of the key, so that a new one ends all sessions.
 *
 * A request counts as a session's only with the console's own header. Another site cannot make a
 * browser send that without being asked for permission first, which nobody is given.
 *
 * A request to the API names the organization of the page that sends it. All tabs of a browser share the
 * cookie, so a session may have been replaced behind a page: a request for an organization that the
 * session does not open is refused.
 */
import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { parseCookie, stringifySetCookie } from 'cookie';
import type { ApiKeys } from '../api-keys/api-keys.ts';
import type { Database } from '../database/database.ts';
import type { Credentials } from '../http/authenticate.ts';
import type { Caller } from '../kernel/caller.ts';
import { type Clock, timestamp } from '../kernel/clock.ts';
import { PlatformError } from '../kernel/errors.ts';
import { isSame, secretCheck } from '../kernel/same.ts';
import { sessionSecret } from './console.store.ts';

const cookiePrefix = 'skillwright_session_';
const headerName = 'x-skillwright-console';
const organizationHeaderName = 'x-skillwright-organization';
const hour = 3_600_000;
const lifetimeMs = 12 * hour;
/** However often it was given anew: then one signs in again. */
const longestMs = 7 * 24 * hour;
/** Less than this left, and it is given anew: nobody who is working is signed out. */
const renewedMs = 6 * hour;
/** What a session may read in a minute; it does not count against the limit of its key. */
const readsPerMinute = 1_200;

/** The administrator, who acts in the organization that each request names, or the holder of a key. */
type Holder =
  | { readonly kind: 'administrator' }
  | { readonly kind: 'api_key'; readonly api_key_id: string };

type Session = Holder & { readonly signed_in_at: number; readonly expires_at: number };

/** A request, as far as sessions look at it. */
export interface Asking {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export type Sessions = ReturnType<typeof createSessions>;

export function createSessions({
  database,
  apiKeys,
  adminSecret,
  clock,
}: {
  database: Database;
  apiKeys: Pick<ApiKeys, 'verify' | 'callerById' | 'consoleCaller' | 'organizations'>;
  adminSecret: string;
  clock: Clock;
}) {
  let keys: Promise<{ readonly signing: Buffer; readonly cookieName: string }> | undefined;
  const isAdminSecret = secretCheck(adminSecret);

  /** Read when it is first needed; one that could not be read is asked for again. */
  function readKeys() {
    keys ??= sessionSecret(database, randomBytes(32).toString('hex')).then((text) => {
      const secret = Buffer.from(text, 'hex');
      const derived = (salt: string, use: string, bytes: number) =>
        Buffer.from(hkdfSync('sha256', secret, salt, use, bytes));
      // A browser keeps cookies by host, whatever the port: platforms on one machine must not share one.
      const cookieName = cookiePrefix + derived('', 'console cookie', 4).toString('hex');
      return { signing: derived(adminSecret, 'console session', 32), cookieName };
    });
    keys.catch(() => {
      keys = undefined;
    });
    return keys;
  }

  const signatureOf = async (value: string) =>
    createHmac('sha256', (await readKeys()).signing)
      .update(value)
      .digest('base64url');

  /** The session that a request belongs to; null for none, or one that is over. */
  async function sessionOf({ headers }: Asking): Promise<Session | null> {
    const { cookie, [headerName]: marked } = headers;
    if (cookie === undefined || marked === undefined) return null;
    const { cookieName } = await readKeys();
    const [value = '', signature = ''] = parseCookie(String(cookie))[cookieName]?.split('.') ?? [];
    if (value === '' || !isSame(signature, await signatureOf(value))) return null;
    const session = JSON.parse(Buffer.from(value, 'base64url').toString()) as Session;
    const now = clock.now();
    return session.expires_at > now && session.expires_at <= now + lifetimeMs ? session : null;
  }

  /** The caller behind a session's key; undefined when it may do nothing any more. */
  const keyCallerOf = ({ api_key_id }: { readonly api_key_id: string }) =>
    apiKeys.callerById(api_key_id);

  /** Who acts in a session in the organization that a request names; `401` if that may not be. */
  async function requestCallerOf(session: Session, { headers }: Asking): Promise<Caller> {
    const organizationId = headers[organizationHeaderName];
    if (typeof organizationId !== 'string' || organizationId === '') {
      throw new PlatformError(
        'authentication_required',
        `Name the organization in the header ${organizationHeaderName}: load the page again`,
      );
    }
    if (session.kind === 'administrator') {
      const caller = await apiKeys.consoleCaller(organizationId);
      if (caller !== undefined) return caller;
      throw new PlatformError(
        'authentication_required',
        `There is no organization “${organizationId}”`,
      );
    }
    const caller = await keyCallerOf(session);
    if (caller === undefined) throw keyIsOver();
    if (caller.organizationId === organizationId) return caller;
    throw new PlatformError(
      'authentication_required',
      `The request is for the organization “${organizationId}”, and the session is signed in to “${caller.organizationId}”`,
    );
  }

  /** Opens a session, or goes on with one that was opened at `signedInAt`, but not for ever. */
  async function begin(request: Asking, holder: Holder, signedInAt = clock.now()) {
    const expires_at = Math.min(clock.now() + lifetimeMs, signedInAt + longestMs);
    const session: Session = { ...holder, signed_in_at: signedInAt, expires_at };
    const value = Buffer.from(JSON.stringify(session)).toString('base64url');
    const signature = await signatureOf(value);
    const seconds = Math.ceil((expires_at - clock.now()) / 1000);
    const content = await shown(session);
    if (content === null) throw keyIsOver();
    return {
      cookie: await setCookie(request, `${value}.${signature}`, seconds),
      session: content,
    };
  }

  /** A session as the console is shown it; null when its key may do nothing any more. */
  async function shown(session: Session) {
    const expires_at = timestamp(session.expires_at);
    if (session.kind === 'administrator') {
      return {
        kind: session.kind,
        api_key_id: null,
        client_name: 'Administrator',
        scopes: ['*'],
        organizations: await apiKeys.organizations(),
        expires_at,
      };
    }
    const caller = await keyCallerOf(session);
    if (caller === undefined) return null;
    return {
      kind: session.kind,
      api_key_id: caller.keyId,
      client_name: caller.clientName,
      scopes: caller.scopes,
      organizations: [caller.organizationId],
      expires_at,
    };
  }

  /** Whose secret this is; `401` for nobody's. */
  async function holderOf(secret: string): Promise<Holder> {
    if (isAdminSecret(secret)) return { kind: 'administrator' };
    try {
      return { kind: 'api_key', api_key_id: (await apiKeys.verify(secret)).keyId };
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== 'invalid_api_key') throw error;
      throw new PlatformError(
        'invalid_api_key',
        'This is neither the admin secret nor a valid API key',
      );
    }
  }

  async function setCookie({ headers }: Asking, value: string, maxAge: number): Promise<string> {
    // A balancer that ends TLS says so; over plain HTTP a secure cookie would not come back.
    const [protocol = ''] = String(headers['x-forwarded-proto'] ?? '').split(',');
    const secure = protocol.trim().toLowerCase() === 'https';
    const attributes = { httpOnly: true, sameSite: 'strict', path: '/', secure } as const;
    const { cookieName } = await readKeys();
    return stringifySetCookie({ name: cookieName, value, ...attributes, maxAge });
  }

  return {
    /** Opens a session for the admin secret or an API key; `401` for anything else. */
    async open(request: Asking, secret: string) {
      return await begin(request, await holderOf(secret));
    },

    /**
     * The session of a request, with a new cookie when it has not long to go; null for none, or one
     * whose key may do nothing any more.
     */
    async read(request: Asking) {
      const session = await sessionOf(request);
      const content = session === null ? null : await shown(session);
      if (session === null || content === null) return null;
      const { signed_in_at, expires_at, ...holder } = session;
      const isLate = expires_at - clock.now() < renewedMs;
      return isLate
        ? await begin(request, holder, signed_in_at)
        : { cookie: null, session: content };
    },

    /** The cookie that ends a session in its browser. */
    ended: (request: Asking) => setCookie(request, '', 0),

    async isAdministrator(request: Asking): Promise<boolean> {
      return (await sessionOf(request))?.kind === 'administrator';
    },

    /**
     * Who a request without a key is from; null when it belongs to no session, `401` when it is for
     * an organization that its session does not open. What a session changes counts against the limit of its key, what it reads does not.
     */
    async credentials(request: Asking): Promise<Credentials | null> {
      const session = await sessionOf(request);
      if (session === null) return null;
      const caller = await requestCallerOf(session, request);
      const isReading = request.method === 'GET' || request.method === 'HEAD';
      return isReading
        ? { caller, limitedAs: `console:${caller.keyId}`, perMinute: readsPerMinute }
        : { caller, limitedAs: caller.keyId, perMinute: caller.rateLimit };
    },
  };
}

const keyIsOver = () =>
  new PlatformError('invalid_api_key', 'The API key of this session is invalid or revoked');
