/**
 * Asks authorization servers for what an account needs, with the helpers of the MCP SDK: where a server's tokens come
 * from, a client, tokens for a code, new ones, and their revocation. Loaded at its first use. Every request goes through
 * the guarded connector, and each operation is bounded in time and bytes. Throws OauthFault.
 */
import {
  type AuthorizationServerMetadata,
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  exchangeAuthorization,
  extractWWWAuthenticateParams,
  OAuthError,
  type OAuthMetadata,
  type OAuthProtectedResourceMetadata,
  type OAuthTokens,
  refreshAuthorization,
  registerClient,
  resourceUrlFromServerUrl,
  selectClientAuthMethod,
  startAuthorization,
  validateAuthorizationResponseIssuer,
} from '@modelcontextprotocol/client';
import type { AllowList } from '../../egress/allow-list.ts';
import { EgressError } from '../../egress/egress-error.ts';
import { createGuardedFetch } from '../../egress/fetch-through.ts';
import { checkUrl } from '../../egress/url-guard.ts';
import { isObject } from '../../kernel/json.ts';
import { OauthFault } from './oauth-fault.ts';

/** Bytes of one answer. */
const answerBytesMax = 256 * 1024;
const operationMsDefault = 20_000;
const textCharsMax = 300;
const tokenCharsMax = 16_384;
const scopeCharsMax = 2_000;

const keptFields = [
  ...(['issuer', 'authorization_endpoint', 'token_endpoint', 'registration_endpoint'] as const),
  ...(['response_types_supported', 'code_challenge_methods_supported'] as const),
  ...(['token_endpoint_auth_methods_supported', 'revocation_endpoint'] as const),
  ...(['authorization_response_iss_parameter_supported', 'scopes_supported'] as const),
] as const satisfies readonly (keyof OAuthMetadata)[];

/** What is kept of an authorization server: the fields above alone. */
export type ServerMetadata = OAuthMetadata;

/** A client of an authorization server. */
export interface OauthClientInformation {
  readonly client_id: string;
  readonly client_secret?: string;
  readonly token_endpoint_auth_method?: string;
}

/** Where the tokens of a server come from, and what they are for. */
export interface TokenSource {
  readonly metadata: ServerMetadata;
  /** RFC 8707. */
  readonly resource: string;
}

export interface FoundServer extends TokenSource {
  readonly takesMetadataUrls: boolean;
  /** What the server asks for, if it says so. */
  readonly scope: string | undefined;
}

export type Tokens = Pick<OAuthTokens, 'access_token' | 'refresh_token' | 'scope' | 'expires_in'>;

export interface OauthClientDeps {
  readonly allowed: AllowList;
  /** Milliseconds of one operation. */
  readonly operationMs?: number;
}

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

export type OauthClient = ReturnType<typeof createOauthClient>;

export function createOauthClient({ allowed, operationMs = operationMsDefault }: OauthClientDeps) {
  const guarded = createGuardedFetch({
    allowed,
    schemes: ['https:', 'http:'],
    maxBytes: answerBytesMax,
  });
  /** Runs an operation within its time; what fails is an OauthFault. */
  const within = async <T>(operation: (fetch: Fetch) => Promise<T>): Promise<T> => {
    const deadline = AbortSignal.timeout(operationMs);
    const fetch: Fetch = (url, init = {}) => {
      const signals = init.signal ? [init.signal, deadline] : [deadline];
      return guarded.fetch(url, { ...init, signal: AbortSignal.any(signals) });
    };
    try {
      return await operation(fetch);
    } catch (error) {
      throw faultOf(error, deadline);
    }
  };
  return {
    find: (asked: FindAsked) => within((fetch) => find(fetch, allowed, asked)),
    register: (metadata: ServerMetadata, client: object) =>
      within((fetch) => register(fetch, metadata, client)),
    start: (asked: StartAsked) => within(() => start(asked)),
    checkIssuer,
    exchange: (from: TokenSource, client: OauthClientInformation, code: ReturnedCode) =>
      within((fetch) => exchange(fetch, from, client, code)),
    refresh: (from: TokenSource, client: OauthClientInformation, refreshToken: string) =>
      within((fetch) => refresh(fetch, from, client, refreshToken)),
    revoke: (from: TokenSource, client: OauthClientInformation, tokens: Tokens) =>
      within((fetch) => revoke(fetch, from, client, tokens)),
    close: () => guarded.close(),
  };
}

interface FindAsked {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The authorization server that the operator named. */
  readonly issuer: string | undefined;
}

/** The authorization server of an MCP server: RFC 9728, then RFC 8414 or OpenID Connect Discovery. */
async function find(fetch: Fetch, allowed: AllowList, asked: FindAsked): Promise<FoundServer> {
  const { url } = asked;
  const challenge = await challengeOf(fetch, asked);
  const resource = await resourceMetadataOf(fetch, url, challenge.resourceMetadataUrl);
  const issuer = issuerOf(asked, resource);
  refuseAddress(allowed, issuer, 'The authorization server');
  const metadata = await discoverAuthorizationServerMetadata(issuer, { fetchFn: fetch });
  if (metadata === undefined) {
    throw new OauthFault('refused', whyUnknown(issuer, challenge.isAsked, resource));
  }
  refuseUnusable(allowed, metadata);
  return {
    metadata: keptOf(metadata),
    resource: resource?.resource ?? resourceUrlFromServerUrl(url).href,
    takesMetadataUrls: metadata.client_id_metadata_document_supported === true,
    scope: scopeOf(challenge.scope ?? resource?.scopes_supported?.join(' '), metadata),
  };
}

/** Why no authorization server was found. */
function whyUnknown(
  issuer: string,
  isAsked: boolean,
  resource: OAuthProtectedResourceMetadata | undefined,
): string {
  if (resource?.authorization_servers?.length) {
    return `The authorization server ${issuer} publishes no metadata`;
  }
  return isAsked
    ? 'The server asks for a token, and names no authorization server: its operator has to set a token of its own as the header authorization'
    : 'The server does not ask for authorization';
}

/** What the server says to a request without a token. */
async function challengeOf(fetch: Fetch, { url, headers }: FindAsked) {
  const message = {
    ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
    params: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'skillwright', version: '1' },
    },
  };
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      ...headers,
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: JSON.stringify(message),
  });
  await response.body?.cancel().catch(() => {});
  const isAsked = response.status === 401;
  return { isAsked, ...(isAsked ? extractWWWAuthenticateParams(response) : {}) };
}

async function resourceMetadataOf(
  fetch: Fetch,
  url: string,
  resourceMetadataUrl: URL | undefined,
): Promise<OAuthProtectedResourceMetadata | undefined> {
  let resource: OAuthProtectedResourceMetadata;
  try {
    const at = resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl };
    resource = await discoverOAuthProtectedResourceMetadata(url, at, fetch);
  } catch (error) {
    if (error instanceof EgressError || (error as Error).name === 'TimeoutError') throw error;
    // Servers of the revision 2025-03-26 have none: they are their own authorization server.
    return undefined;
  }
  if (!isWithin(url, resource.resource)) {
    const what = `The server says that its tokens are for ${shortOf(resource.resource)}, which is another one`;
    throw new OauthFault('refused', what);
  }
  return resource;
}

/** Whether the resource is the server, or what the server's address is below. */
function isWithin(url: string, resource: string): boolean {
  const server = URL.parse(url);
  const named = URL.parse(resource);
  if (server === null || named === null || server.origin !== named.origin) return false;
  const path = named.pathname.endsWith('/') ? named.pathname : `${named.pathname}/`;
  return `${server.pathname}/`.startsWith(path);
}

function issuerOf(
  { url, issuer: expected }: FindAsked,
  resource: OAuthProtectedResourceMetadata | undefined,
): string {
  const named = resource?.authorization_servers ?? [];
  const fallback = new URL('/', url).href;
  if (expected === undefined) return named[0] ?? fallback;
  const found = named.find((one) => isSameIssuer(one, expected));
  if (found !== undefined) return found;
  if (named.length === 0 && isSameIssuer(fallback, expected)) return fallback;
  const what = `The server takes no tokens of ${expected}, which is set as its issuer`;
  throw new OauthFault('refused', what);
}

const isSameIssuer = (one: string, other: string) =>
  one.replace(/\/$/, '') === other.replace(/\/$/, '');

function refuseUnusable(allowed: AllowList, metadata: AuthorizationServerMetadata): void {
  const { issuer, code_challenge_methods_supported: methods } = metadata;
  if (!methods?.includes('S256')) {
    throw new OauthFault('refused', `The authorization server ${issuer} does not support PKCE`);
  }
  refuseAddress(allowed, metadata.authorization_endpoint, 'The authorization endpoint');
  refuseAddress(allowed, metadata.token_endpoint, 'The token endpoint');
}

/** Tokens and codes are sent only over TLS, but for addresses of this machine. */
function refuseAddress(allowed: AllowList, url: string, what: string): void {
  const checked = checkUrl(url, { schemes: ['https:', 'http:'], allowed, fragment: 'refused' });
  if (!checked.ok) throw new OauthFault('refused', `${what} ${checked.reason}`);
  const { protocol, hostname } = checked.url;
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
  if (protocol === 'https:' || isLoopback) return;
  throw new OauthFault('refused', `${what} is not https`);
}

function keptOf(metadata: AuthorizationServerMetadata): ServerMetadata {
  return Object.fromEntries(
    keptFields.map((name) => [name, (metadata as OAuthMetadata)[name]]),
  ) as ServerMetadata;
}

/** With the scope for which many servers give refresh tokens. */
function scopeOf(asked: string | undefined, { scopes_supported: supported = [] }: ServerMetadata) {
  if (asked === undefined || asked === '') return undefined;
  const scopes = new Set(asked.split(' ').filter((one) => one !== ''));
  if (supported.includes('offline_access')) scopes.add('offline_access');
  return [...scopes].join(' ').slice(0, scopeCharsMax);
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
  const asked = { metadata, clientMetadata: client as never, fetchFn: fetch };
  const registered = await registerClient(metadata.issuer, asked);
  const { client_id, client_secret, token_endpoint_auth_method } = registered;
  return {
    client_id,
    ...(client_secret !== undefined && { client_secret }),
    ...(token_endpoint_auth_method !== undefined && { token_endpoint_auth_method }),
  };
}

interface StartAsked {
  readonly from: TokenSource;
  readonly client: OauthClientInformation;
  readonly redirectUri: string;
  readonly state: string;
  readonly scope: string | undefined;
}

/** The address that a person is sent to, with the verifier of its challenge (PKCE). */
async function start({ from, client, redirectUri, state, scope }: StartAsked) {
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

/** RFC 9207. Throws OauthFault for an answer of another authorization server than the one that was asked. */
function checkIssuer(metadata: ServerMetadata, iss: string | undefined): void {
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

function faultOf(error: unknown, deadline: AbortSignal): OauthFault {
  if (error instanceof OauthFault) return error;
  if (deadline.aborted) {
    return new OauthFault('away', 'The authorization server did not answer in time', error);
  }
  const egress = egressIn(error);
  if (egress !== undefined) {
    const what = `The authorization server could not be asked. ${egress.message}`;
    return new OauthFault(egress.retryable ? 'away' : 'refused', what, error);
  }
  if (error instanceof OAuthError) return oauthFault(error);
  const what = `The authorization server did not answer as it should: ${shortOf(messageOf(error))}`;
  return new OauthFault('refused', what, error);
}

const away = new Set(['server_error', 'temporarily_unavailable', 'too_many_requests']);

function oauthFault(error: OAuthError): OauthFault {
  const code = String(error.code);
  // The SDK calls an answer that is not JSON a fault of the server, and puts all of it into the message.
  const isUnreadable = error.message.includes('Invalid OAuth error response');
  const said = isUnreadable ? 'an answer that cannot be read' : shortOf(error.message);
  const what = `The authorization server refused: ${code} (${said})`;
  if (code === 'invalid_grant') return new OauthFault('grant', what, error);
  if (code === 'invalid_client' || code === 'unauthorized_client') {
    return new OauthFault('client', what, error);
  }
  return new OauthFault(away.has(code) ? 'away' : 'refused', what, error);
}

function egressIn(error: unknown, depth = 0): EgressError | undefined {
  if (error instanceof EgressError) return error;
  if (!isObject(error) && !(error instanceof Error)) return undefined;
  return depth > 5 ? undefined : egressIn((error as Error).cause, depth + 1);
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

function shortOf(text: string): string {
  return text.replaceAll(/\s+/g, ' ').slice(0, textCharsMax);
}
