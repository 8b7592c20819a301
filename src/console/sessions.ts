/**
 * Sessions of the console: what a browser is given for the admin secret or an API key. A session is a
 * cookie that scripts cannot read, signed and kept nowhere, so that every process of a cluster knows it.
 * It says whose it is and until when; whether that key may still do anything is asked each time.
 *
 * A request counts as a session's only with the console's own header. Another site cannot make a
 * browser send that without being asked for permission first, which nobody is given.
 */
import { createHash, createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { parseCookie, stringifySetCookie } from 'cookie';
import type { ApiKeys } from '../api-keys/api-keys.ts';
import type { Credentials } from '../http/authenticate.ts';
import type { Caller } from '../kernel/caller.ts';
import { type Clock, timestamp } from '../kernel/clock.ts';
import { PlatformError } from '../kernel/errors.ts';

const cookieName = 'skillwright_session';
const headerName = 'x-skillwright-console';
const hour = 3_600_000;
const lifetimeMs = 12 * hour;
/** Less than this left, and it is given anew: nobody who is working is signed out. */
const renewedMs = 6 * hour;
/** What a session reads in a minute; it does not count against the limit of its key. */
const readsPerMinute = 3_000;

/** The administrator, who acts in one organization at a time, or the holder of a key. */
type Holder =
  | { readonly kind: 'administrator'; readonly organization_id: string }
  | { readonly kind: 'api_key'; readonly api_key_id: string };

type Session = Holder & { readonly expires_at: number };

/** A request, as far as sessions look at it. */
export interface Asking {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export type Sessions = ReturnType<typeof createSessions>;

export function createSessions({
  apiKeys,
  adminSecret,
  clock,
}: {
  apiKeys: Pick<ApiKeys, 'verify' | 'callerById' | 'consoleCaller' | 'organizations'>;
  adminSecret: string;
  clock: Clock;
}) {
  const key = Buffer.from(hkdfSync('sha256', adminSecret, '', 'skillwright console session', 32));
  const signatureOf = (value: string) => createHmac('sha256', key).update(value).digest();
  const expected = digest(adminSecret);

  /** The session that a request belongs to; null for none, or one that is over. */
  function sessionOf({ headers }: Asking): Session | null {
    const { cookie, [headerName]: marked } = headers;
    if (cookie === undefined || marked === undefined) return null;
    const [value = '', signature = ''] = parseCookie(String(cookie))[cookieName]?.split('.') ?? [];
    const given = Buffer.from(signature, 'base64url');
    const right = signatureOf(value);
    if (given.length !== right.length || !timingSafeEqual(given, right)) return null;
    const session = JSON.parse(Buffer.from(value, 'base64url').toString()) as Session;
    return session.expires_at > clock.now() ? session : null;
  }

  function callerOf(session: Session): Promise<Caller | undefined> {
    return session.kind === 'administrator'
      ? apiKeys.consoleCaller(session.organization_id)
      : apiKeys.callerById(session.api_key_id);
  }

  function cookieOf(request: Asking, holder: Holder): string {
    const session: Session = { ...holder, expires_at: clock.now() + lifetimeMs };
    const value = Buffer.from(JSON.stringify(session)).toString('base64url');
    const signature = signatureOf(value).toString('base64url');
    return setCookie(request, `${value}.${signature}`, lifetimeMs / 1000);
  }

  /** A session as the console is shown it. */
  async function shown(session: Holder & { expires_at?: number }) {
    const isAdministrator = session.kind === 'administrator';
    const caller = await callerOf({ expires_at: 0, ...session });
    if (caller === undefined) {
      throw new PlatformError(
        'invalid_api_key',
        'The API key of this session is invalid or revoked',
      );
    }
    return {
      kind: session.kind,
      organization_id: caller.organizationId,
      client_name: isAdministrator ? 'Administrator' : caller.clientName,
      scopes: caller.scopes,
      organizations: isAdministrator ? await apiKeys.organizations() : [caller.organizationId],
      expires_at: timestamp(session.expires_at ?? clock.now() + lifetimeMs),
    };
  }

  /** Whose secret this is; `401` for nobody's. */
  async function holderOf(secret: string): Promise<Holder> {
    if (timingSafeEqual(digest(secret), expected)) {
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

  return {
    /** Opens a session for the admin secret or an API key; `401` for anything else. */
    async open(request: Asking, secret: string) {
      const holder = await holderOf(secret);
      return { cookie: cookieOf(request, holder), session: await shown(holder) };
    },

    /**
     * The session of a request, with a new cookie when it has not long to go; null for none, or one
     * whose key may do nothing any more.
     */
    async read(request: Asking) {
      const session = sessionOf(request);
      if (session === null || (await callerOf(session)) === undefined) return null;
      const { expires_at, ...holder } = session;
      const isLate = expires_at - clock.now() < renewedMs;
      return isLate
        ? { cookie: cookieOf(request, holder), session: await shown(holder) }
        : { cookie: null, session: await shown(session) };
    },

    /** Has the administrator act in another organization. */
    async enter(request: Asking, organizationId: string) {
      const session = sessionOf(request);
      if (session === null) throw new PlatformError('authentication_required', 'Sign in first');
      const { kind } = session;
      if (kind !== 'administrator') {
        throw new PlatformError('insufficient_scope', 'A key belongs to one organization');
      }
      if (!(await apiKeys.organizations()).includes(organizationId)) {
        throw new PlatformError('not_found', 'There is no such organization');
      }
      const holder: Holder = { kind, organization_id: organizationId };
      return { cookie: cookieOf(request, holder), session: await shown(holder) };
    },

    /** The cookie that ends a session in its browser. */
    ended: (request: Asking) => setCookie(request, '', 0),

    isAdministrator: (request: Asking) => sessionOf(request)?.kind === 'administrator',

    /**
     * Who a request without a key is from; null when it belongs to no session. What a session
     * changes counts against the limit of its key, what it reads does not.
     */
    async credentials(request: Asking): Promise<Credentials | null> {
      const session = sessionOf(request);
      if (session === null) return null;
      const caller = await callerOf(session);
      if (caller === undefined) {
        throw new PlatformError(
          'invalid_api_key',
          'The API key of this session is invalid or revoked',
        );
      }
      const isReading = request.method === 'GET' || request.method === 'HEAD';
      return isReading
        ? { caller, limitedAs: `console:${caller.keyId}`, perMinute: readsPerMinute }
        : { caller, limitedAs: caller.keyId, perMinute: caller.rateLimit };
    },
  };
}

function setCookie({ headers }: Asking, value: string, maxAge: number): string {
  // A balancer that ends TLS says so; over plain HTTP a secure cookie would not come back.
  const secure = headers['x-forwarded-proto'] === 'https';
  const attributes = { httpOnly: true, sameSite: 'strict', path: '/', secure } as const;
  return stringifySetCookie({ name: cookieName, value, ...attributes, maxAge });
}

function digest(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
