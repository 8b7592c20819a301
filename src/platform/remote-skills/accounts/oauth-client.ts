/**
 * Requests to authorization servers, with the helpers of the MCP SDK: discovery, registration of a client, tokens for a
 * code, new tokens, and their revocation. Loaded at its first use. Every request goes through
 * the guarded connector, and each operation is bounded in time and bytes. Throws OauthFault.
 */
import {
  exchangeAuthorization,
  type OAuthTokens,
  refreshAuthorization,
  registerClient,
  selectClientAuthMethod,
  startAuthorization,
  validateAuthorizationResponseIssuer,
} from '@modelcontextprotocol/client';
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import { GuardedFetch } from '../../../adapters/egress/fetch-through.ts';
import {
  type Fetch,
  type FindRequest,
  type FoundServer,
  fetchOverTls,
  find,
  type ServerMetadata,
  scopeCharsMax,
  type TokenSource,
} from './oauth-discovery.ts';
import { faultOf, shortOf } from './oauth-errors.ts';
import { OauthFault } from './oauth-fault.ts';

/** Bytes of one answer. */
const answerBytesMax = 256 * 1024;
const operationMsDefault = 20_000;
const tokenCharsMax = 16_384;

/** A client of an authorization server. */
export interface OauthClientInformation {
  readonly client_id: string;
  readonly client_secret?: string;
  readonly token_endpoint_auth_method?: string;
}

export type Tokens = Pick<OAuthTokens, 'access_token' | 'refresh_token' | 'scope' | 'expires_in'>;

export class OauthClient {
  readonly #allowed: AllowList;
  readonly #guarded: GuardedFetch;
  /** Milliseconds of one operation. */
  readonly #operationMs: number;

  constructor(allowed: AllowList, operationMs = operationMsDefault) {
    this.#allowed = allowed;
    this.#operationMs = operationMs;
    this.#guarded = new GuardedFetch({
      allowed,
      schemes: ['https:', 'http:'],
      maxBytes: answerBytesMax,
    });
  }

  /** Finds the authorization server of a server. */
  find(request: FindRequest): Promise<FoundServer> {
    return this.#within((fetch) => find(fetch, this.#allowed, request));
  }

  register(metadata: ServerMetadata, client: object): Promise<OauthClientInformation> {
    return this.#within((fetch) => register(fetchOverTls(fetch), metadata, client));
  }

  /** The address that a person is sent to, with the verifier of its challenge (PKCE). */
  start(request: StartRequest) {
    return this.#within(() => start(request));
  }

  /** RFC 9207. Throws OauthFault for an answer of another authorization server than the expected one. */
  checkIssuer(metadata: ServerMetadata, iss: string | undefined): void {
    try {
      validateAuthorizationResponseIssuer({
        ...{ iss, expectedIssuer: metadata.issuer },
        issParameterSupported: metadata.authorization_response_iss_parameter_supported === true,
      });
    } catch (error) {
      const what = `The answer is not that of the authorization server ${metadata.issuer}`;
      throw new OauthFault('refused', what, error);
    }
  }

  exchange(from: TokenSource, client: OauthClientInformation, code: ReturnedCode): Promise<Tokens> {
    return this.#within((fetch) => exchange(fetchOverTls(fetch), from, client, code));
  }

  refresh(
    from: TokenSource,
    client: OauthClientInformation,
    refreshToken: string,
  ): Promise<Tokens> {
    return this.#within((fetch) => refresh(fetchOverTls(fetch), from, client, refreshToken));
  }

  /** False where the authorization server does not offer revocation. */
  revoke(from: TokenSource, client: OauthClientInformation, tokens: Tokens): Promise<boolean> {
    return this.#within((fetch) => revoke(fetchOverTls(fetch), from, client, tokens));
  }

  close(): Promise<void> {
    return this.#guarded.close();
  }

  /** Runs an operation within its time; what fails is an OauthFault. */
  async #within<T>(operation: (fetch: Fetch) => Promise<T>): Promise<T> {
    const deadline = AbortSignal.timeout(this.#operationMs);
    const fetch: Fetch = (url, init = {}) => {
      const signals = init.signal ? [init.signal, deadline] : [deadline];
      return this.#guarded.fetch(url, { ...init, signal: AbortSignal.any(signals) });
    };
    try {
      return await operation(fetch);
    } catch (error) {
      throw faultOf(error, deadline);
    }
  }
}

/** RFC 7591. */
async function register(
  fetch: Fetch,
  metadata: ServerMetadata,
  client: object,
): Promise<OauthClientInformation> {
  if (metadata.registration_endpoint === undefined) {
    const what = `The authorization server ${metadata.issuer} registers no clients: register one there, and set its client_id`;
    throw new OauthFault('refused', what);
  }
  const request = { metadata, clientMetadata: client as never, fetchFn: fetch };
  const registered = await registerClient(metadata.issuer, request);
  const { client_id, client_secret, token_endpoint_auth_method } = registered;
  return {
    client_id,
    ...(client_secret !== undefined && { client_secret }),
    ...(token_endpoint_auth_method !== undefined && { token_endpoint_auth_method }),
  };
}

interface StartRequest {
  readonly from: TokenSource;
  readonly client: OauthClientInformation;
  readonly redirectUri: string;
  readonly state: string;
  readonly scope: string | undefined;
}

async function start({ from, client, redirectUri, state, scope }: StartRequest) {
  const { authorizationUrl, codeVerifier } = await startAuthorization(from.metadata.issuer, {
    ...{ metadata: from.metadata, clientInformation: client, redirectUrl: redirectUri, state },
    ...{ resource: from.resource, ...(scope !== undefined && { scope }) },
  });
  return { url: authorizationUrl.href, verifier: codeVerifier };
}

export interface ReturnedCode {
  readonly code: string;
  readonly iss: string | undefined;
  readonly verifier: string;
  readonly redirectUri: string;
}

async function exchange(
  fetch: Fetch,
  { metadata, resource }: TokenSource,
  client: OauthClientInformation,
  { code, iss, verifier, redirectUri }: ReturnedCode,
): Promise<Tokens> {
  const tokens = await exchangeAuthorization(metadata.issuer, {
    ...{ metadata, clientInformation: client, authorizationCode: code, codeVerifier: verifier },
    ...{ redirectUri, resource, fetchFn: fetch, ...(iss !== undefined && { iss }) },
  });
  return checkedTokens(metadata, tokens);
}

async function refresh(
  fetch: Fetch,
  { metadata, resource }: TokenSource,
  client: OauthClientInformation,
  refreshToken: string,
): Promise<Tokens> {
  const tokens = await refreshAuthorization(metadata.issuer, {
    ...{ metadata, clientInformation: client, refreshToken, resource, fetchFn: fetch },
  });
  return checkedTokens(metadata, tokens);
}

function checkedTokens({ issuer }: ServerMetadata, tokens: OAuthTokens): Tokens {
  const { access_token, refresh_token, scope, expires_in, token_type: type } = tokens;
  if (type.toLowerCase() !== 'bearer') {
    const what = `The authorization server ${issuer} gave a token of the type ${shortOf(type)}, which cannot be used`;
    throw new OauthFault('refused', what);
  }
  for (const token of [access_token, refresh_token ?? 'x']) {
    if (/^[\x21-\x7e]+$/.test(token) && token.length <= tokenCharsMax) continue;
    const what = `The authorization server ${issuer} gave a token that cannot be used`;
    throw new OauthFault('refused', what);
  }
  return {
    access_token,
    ...(refresh_token !== undefined && { refresh_token }),
    ...(scope !== undefined && { scope: scope.slice(0, scopeCharsMax) }),
    ...(expires_in !== undefined && Number.isFinite(expires_in) && { expires_in }),
  };
}

/** RFC 7009: the refresh token, with which servers end the whole grant, and the access token. False where it is not offered. */
async function revoke(
  fetch: Fetch,
  { metadata }: TokenSource,
  client: OauthClientInformation,
  { access_token, refresh_token }: Tokens,
): Promise<boolean> {
  const { revocation_endpoint: endpoint } = metadata;
  if (endpoint === undefined) return false;
  const given = [
    ...(refresh_token === undefined ? [] : [['refresh_token', refresh_token]]),
    ['access_token', access_token],
  ];
  for (const [hint = '', token = ''] of given) {
    const form = new URLSearchParams({ token, token_type_hint: hint });
    const headers = new Headers({ 'content-type': 'application/x-www-form-urlencoded' });
    authenticate(metadata, client, form, headers);
    const response = await fetch(endpoint, { method: 'POST', headers, body: form });
    await response.body?.cancel().catch(() => {});
    if (response.ok) continue;
    const what = `The authorization server ${metadata.issuer} answered a revocation with ${response.status}`;
    throw new OauthFault(response.status >= 500 ? 'away' : 'refused', what);
  }
  return true;
}

function authenticate(
  { token_endpoint_auth_methods_supported: methods = [] }: ServerMetadata,
  client: OauthClientInformation,
  form: URLSearchParams,
  headers: Headers,
): void {
  const { client_id: id, client_secret: secret } = client;
  const method = selectClientAuthMethod(client as never, methods);
  if (method === 'client_secret_basic' && secret !== undefined) {
    const pair = [id, secret].map(encodeURIComponent).join(':');
    headers.set('authorization', `Basic ${Buffer.from(pair).toString('base64')}`);
    return;
  }
  form.set('client_id', id);
  if (secret !== undefined) form.set('client_secret', secret);
}
