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
const hour = 3_600_000;
const lifetimeMs = 12 * hour;
/** However often it was given anew: then one signs in again. */
const longestMs = 7 * 24 * hour;
/** Less than this left, and it is given anew: nobody who is working is signed out. */
const renewedMs = 6 * hour;
/** What a session may read in a minute; it does not count against the limit of its key. */
const readsPerMinute = 1_200;

/** The administrator, who acts in one organization at a time, or the holder of a key. */
type Holder =
  | { readonly kind: 'administrator'; readonly organization_id: string }
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

  /** Who acts in a session; undefined when its key may do nothing any more. */
  function callerOf(session: Session): Promise<Caller | undefined> {
    return session.kind === 'administrator'
      ? apiKeys.consoleCaller(session.organization_id)
      : apiKeys.callerById(session.api_key_id);
  }

  async function requiredCallerOf(session: Session): Promise<Caller> {
    const caller = await callerOf(session);
    if (caller !== undefined) return caller;
    throw new PlatformError('invalid_api_key', 'The API key of this session is invalid or revoked');
  }

  /** Opens a session, or goes on with one that was opened at `signedInAt`, but not for ever. */
  async function begin(
    request: Asking,
    holder: Holder,
    { signedInAt = clock.now(), caller }: { signedInAt?: number; caller?: Caller } = {},
  ) {
    const expires_at = Math.min(clock.now() + lifetimeMs, signedInAt + longestMs);
    const session: Session = { ...holder, signed_in_at: signedInAt, expires_at };
    const value = Buffer.from(JSON.stringify(session)).toString('base64url');
    const signature = await signatureOf(value);
    const seconds = Math.ceil((expires_at - clock.now()) / 1000);
    return {
      cookie: await setCookie(request, `${value}.${signature}`, seconds),
      session: await shown(session, caller ?? (await requiredCallerOf(session))),
    };
  }

  /** A session as the console is shown it. */
  async function shown(session: Session, caller: Caller) {
    const isAdministrator = session.kind === 'administrator';
    return {
      kind: session.kind,
      organization_id: caller.organizationId,
      client_name: isAdministrator ? 'Administrator' : caller.clientName,
      scopes: caller.scopes,
      organizations: isAdministrator ? await apiKeys.organizations() : [caller.organizationId],
      expires_at: timestamp(session.expires_at),
    };
  }

  /** Whose secret this is; `401` for nobody's. */
  async function holderOf(secret: string): Promise<Holder> {
    if (isAdminSecret(secret)) {
      const [first = 'default'] = await apiKeys.organizations();
      return { kind: 'administrator', organization_id: first };
    }
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
      const caller = session === null ? undefined : await callerOf(session);
      if (session === null || caller === undefined) return null;
      const { signed_in_at, expires_at, ...holder } = session;
      const isLate = expires_at - clock.now() < renewedMs;
      return isLate
        ? await begin(request, holder, { signedInAt: signed_in_at, caller })
        : { cookie: null, session: await shown(session, caller) };
    },

    /** Has the administrator act in another organization. */
    async enter(request: Asking, organizationId: string) {
      const session = await sessionOf(request);
      if (session === null) throw new PlatformError('authentication_required', 'Sign in first');
      const { kind } = session;
      if (kind !== 'administrator') {
        throw new PlatformError('insufficient_scope', 'A key belongs to one organization');
      }
      if (!(await apiKeys.organizations()).includes(organizationId)) {
        throw new PlatformError('not_found', 'There is no such organization');
      }
      const holder = { kind, organization_id: organizationId } as const;
      return await begin(request, holder, { signedInAt: session.signed_in_at });
    },

    /** The cookie that ends a session in its browser. */
    ended: (request: Asking) => setCookie(request, '', 0),

    async isAdministrator(request: Asking): Promise<boolean> {
      return (await sessionOf(request))?.kind === 'administrator';
    },

    /**
     * Who a request without a key is from; null when it belongs to no session. What a session
     * changes counts against the limit of its key, what it reads does not.
     */
    async credentials(request: Asking): Promise<Credentials | null> {
      const session = await sessionOf(request);
      if (session === null) return null;
      const caller = await requiredCallerOf(session);
      const isReading = request.method === 'GET' || request.method === 'HEAD';
      return isReading
        ? { caller, limitedAs: `console:${caller.keyId}`, perMinute: readsPerMinute }
        : { caller, limitedAs: caller.keyId, perMinute: caller.rateLimit };
    },
  };
}
