/** How requests of an import are authorized: header, query, basic, or a token by OAuth client credentials (RFC 6749, 4.4). */
import { EgressError } from '../../../adapters/egress/egress-error.ts';
import type { Egress } from '../../../adapters/egress/guarded-fetch.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { isObject, parsed } from '../../../kernel/json.ts';
import { RemoteFault, type RemoteSource } from '../remote-kind.ts';
import type { RemoteRun } from '../remote-run.ts';
import type { BuiltRequest } from './build-request.ts';
import type { SetByCredentials } from './operation-input.ts';
import { encodeAll } from './parameter-styles.ts';
import {
  type OpenapiSecrets,
  type OpenapiSettings,
  type StoredAuth,
  whyOtherOrigin,
} from './settings.ts';

const tokenBytesMax = 65_536;
const tokenCharsMax = 16_384;
const tokenRequestMs = 15_000;
/** Of a token whose answer names none. */
const lifetimeMsDefault = 300_000;
/** How long before its end a token is not used any more. */
const marginMs = 30_000;

/** What the credentials set in each request. */
export function setByCredentials(auth: StoredAuth): SetByCredentials | null {
  if (auth.type === 'query') return { in: 'query', name: auth.name };
  return auth.type === 'header' ? { in: 'header', name: auth.name } : null;
}

/**
 * The request with the credentials of its import, which are for one origin. Throws RemoteFault where it goes to another
 * one, as that of a version does which was accepted before the address was changed, and where no token can be had.
 */
export async function authorized(
  tokens: ServiceTokens,
  source: RemoteSource,
  request: BuiltRequest,
  signal: AbortSignal,
  run?: RemoteRun,
): Promise<BuiltRequest> {
  const settings = source.settings as unknown as OpenapiSettings;
  const { auth } = settings;
  const why = whyOtherOrigin(settings, source.about, request.url);
  if (why !== null) {
    throw new RemoteFault(why, { code: 'missing_credentials', hadNoEffect: true });
  }
  const { value = '', basic = '' } = source.secrets as OpenapiSecrets;
  const withHeader = (name: string, text: string) => ({
    ...request,
    headers: { ...request.headers, [name.toLowerCase()]: text },
  });
  switch (auth.type) {
    case 'none':
      return request;
    case 'header':
      return withHeader(auth.name, value);
    case 'basic':
      return withHeader('authorization', `Basic ${basic}`);
    case 'query': {
      const url = request.url;
      const separator = url.includes('?') ? '&' : '?';
      return { ...request, url: `${url}${separator}${encodeAll(auth.name)}=${encodeAll(value)}` };
    }
    case 'oauth_client_credentials': {
      const token = await tokens.of(source, auth, signal);
      run?.addSecret(token);
      return withHeader('authorization', `Bearer ${token}`);
    }
  }
}

type OauthAuth = Extract<StoredAuth, { type: 'oauth_client_credentials' }>;

interface Token {
  readonly text: string;
  /** Monotonic. */
  readonly until: number;
}

/** Keeps one token for each source, in memory. Calls at the same time share the request for one. */
export class ServiceTokens {
  readonly #egress: Egress;
  readonly #clock: Clock;
  readonly #tokens = new Map<string, Promise<Token>>();
  /** By source: the credentials that its token is for. */
  readonly #usedFor = new Map<string, string>();

  constructor(egress: Egress, clock: Clock) {
    this.#egress = egress;
    this.#clock = clock;
  }

  async of(source: RemoteSource, auth: OauthAuth, signal: AbortSignal): Promise<string> {
    const tokens = this.#tokens;
    // Another process may have changed the import: a token for its earlier credentials is not used.
    const described = JSON.stringify([auth, source.secrets]);
    if (this.#usedFor.get(source.id) !== described) tokens.delete(source.id);
    this.#usedFor.set(source.id, described);
    const pending = tokens.get(source.id);
    const kept = await pending?.catch(() => undefined);
    if (kept !== undefined && this.#clock.monotonic() < kept.until) return kept.text;
    signal.throwIfAborted();
    const newer = tokens.get(source.id);
    // Another call may have requested one meanwhile.
    if (newer !== undefined && newer !== pending) return (await newer).text;
    const requested = this.#request(source, auth);
    tokens.set(source.id, requested);
    requested.catch(() => {
      if (tokens.get(source.id) === requested) tokens.delete(source.id);
    });
    return (await requested).text;
  }

  /** Forgets the token of a source, or all; false where there was none. */
  forget(sourceId: string | undefined): boolean {
    if (sourceId !== undefined) {
      this.#usedFor.delete(sourceId);
      return this.#tokens.delete(sourceId);
    }
    this.#usedFor.clear();
    this.#tokens.clear();
    return true;
  }

  async #request({ secrets }: RemoteSource, auth: OauthAuth): Promise<Token> {
    const { value = '' } = secrets as OpenapiSecrets;
    const form = new URLSearchParams({ grant_type: 'client_credentials' });
    if (auth.scope !== null) form.set('scope', auth.scope);
    if (auth.audience !== null) form.set('audience', auth.audience);
    const headers: Record<string, string> = {
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
    };
    if (auth.credentials_in === 'body') {
      form.set('client_id', auth.client_id);
      form.set('client_secret', value);
    } else {
      const pair = `${encodeAll(auth.client_id)}:${encodeAll(value)}`;
      headers['authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`;
    }
    const answer = await this.#egress
      .request(auth.token_url, {
        ...{ method: 'POST', headers, body: form.toString() },
        ...{ maxBytes: tokenBytesMax, timeoutMs: tokenRequestMs },
      })
      .catch((error: unknown) => {
        if (!(error instanceof EgressError)) throw error;
        const message = `No token could be requested. ${error.message}`;
        const { retryable } = error;
        throw new RemoteFault(message, { ...away, retryable, cause: error });
      });
    return tokenIn(answer.status, answer.body.toString('utf8'), this.#clock.monotonic());
  }
}

const away = { code: 'upstream_unavailable', hadNoEffect: true } as const;

function tokenIn(status: number, text: string, now: number): Token {
  if (status >= 500 || status === 429) {
    const message = `The server of tokens answered with ${status}`;
    throw new RemoteFault(message, { ...away, retryable: true });
  }
  const answer = parsed(text);
  const { access_token: token, expires_in: seconds, error } = isObject(answer) ? answer : {};
  if (status !== 200 || typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
    const why = typeof error === 'string' ? `: ${error.slice(0, 100)}` : '';
    const message = `The server of tokens refused the credentials (${status})${why}`;
    throw new RemoteFault(message, { code: 'missing_credentials' });
  }
  if (token.length > tokenCharsMax) throw new RemoteFault('The token is too long');
  const lifetimeMs = Number(seconds) > 0 ? Number(seconds) * 1000 : lifetimeMsDefault;
  return { text: token, until: now + Math.max(lifetimeMs - marginMs, lifetimeMs / 2) };
}
