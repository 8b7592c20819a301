/** Finds where the tokens of a server come from, and refuses an authorization server that is not safe to use. */

import {
  type AuthorizationServerMetadata,
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
  type OAuthMetadata,
  type OAuthProtectedResourceMetadata,
  resourceUrlFromServerUrl,
} from '@modelcontextprotocol/client';
import type { AllowList } from '../../../adapters/egress/allow-list.ts';
import { EgressError } from '../../../adapters/egress/egress-error.ts';
import { checkUrl } from '../../../adapters/egress/url-guard.ts';
import { addressWithoutSecrets } from '../../../kernel/base-url.ts';
import { shortOf } from './oauth-errors.ts';
import { OauthFault } from './oauth-fault.ts';

export const scopeCharsMax = 2_000;

export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const keptFields = [
  ...(['issuer', 'authorization_endpoint', 'token_endpoint', 'registration_endpoint'] as const),
  ...(['response_types_supported', 'code_challenge_methods_supported'] as const),
  ...(['token_endpoint_auth_methods_supported', 'revocation_endpoint'] as const),
  ...(['authorization_response_iss_parameter_supported', 'scopes_supported'] as const),
] as const satisfies readonly (keyof OAuthMetadata)[];

/** The stored fields of an authorization server: those above. */
export type ServerMetadata = OAuthMetadata;

/** Where the tokens of a server come from, and what they are for. */
export interface TokenSource {
  readonly metadata: ServerMetadata;
  /** RFC 8707. */
  readonly resource: string;
}

export interface FoundServer extends TokenSource {
  readonly takesMetadataUrls: boolean;
  /** The fault where the default endpoints were assumed and do not exist; null for endpoints that the server named. */
  readonly whyAssumed: string | null;
  /** The scope that the server asks for, if it names one. */
  readonly scope: string | undefined;
}

export interface FindRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The authorization server that the operator named. */
  readonly issuer: string | undefined;
}

/** The authorization server of an MCP server: RFC 9728, then RFC 8414 or OpenID Connect Discovery. */
export async function find(
  fetch: Fetch,
  allowed: AllowList,
  request: FindRequest,
): Promise<FoundServer> {
  const { url } = request;
  const challenge = await challengeOf(fetch, request);
  const resource = await resourceMetadataOf(fetch, url, challenge.resourceMetadataUrl);
  const issuer = issuerOf(request, resource);
  refuseAddress(allowed, issuer, 'The authorization server');
  const discovered = await discoverAuthorizationServerMetadata(issuer, { fetchFn: fetch });
  const isNamed = (resource?.authorization_servers ?? []).length > 0;
  const why = whyUnknown(issuer, { isRequired: challenge.isRequired, isNamed });
  if (discovered === undefined && (isNamed || !challenge.isRequired))
    throw new OauthFault('refused', why);
  const metadata = discovered ?? defaultMetadataOf(url);
  refuseUnusable(allowed, metadata);
  return {
    metadata: keptOf(metadata),
    // The browser and the authorization server read it, and by RFC 8707 it has no query.
    resource: resource?.resource ?? resourceUrlFromServerUrl(addressWithoutSecrets(url)).href,
    takesMetadataUrls: metadata.client_id_metadata_document_supported === true,
    whyAssumed: discovered === undefined ? why : null,
    scope: scopeOf(challenge.scope ?? resource?.scopes_supported?.join(' '), metadata),
  };
}

/** Why no authorization server was found. */
function whyUnknown(
  issuer: string,
  { isRequired, isNamed }: { readonly isRequired: boolean; readonly isNamed: boolean },
): string {
  if (isNamed) return `The authorization server ${issuer} publishes no metadata`;
  return isRequired
    ? 'The server asks for a token, and names no authorization server: its operator has to set a token of its own as the header authorization'
    : 'The server does not ask for authorization';
}

/** What the server says to a request without a token. */
async function challengeOf(fetch: Fetch, { url, headers }: FindRequest) {
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
  const isRequired = response.status === 401;
  return { isRequired, ...(isRequired ? extractWWWAuthenticateParams(response) : {}) };
}

async function resourceMetadataOf(
  fetch: Fetch,
  url: string,
  resourceMetadataUrl: URL | undefined,
): Promise<OAuthProtectedResourceMetadata | undefined> {
  const isOfServer = resourceMetadataUrl?.origin === new URL(url).origin;
  if (resourceMetadataUrl !== undefined && !isOfServer) {
    refuseUnencrypted(resourceMetadataUrl, 'The address of its resource metadata');
  }
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
  { url, issuer: expected }: FindRequest,
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
  const { registration_endpoint: registration, revocation_endpoint: revocation } =
    metadata as OAuthMetadata;
  refuseAddress(allowed, metadata.authorization_endpoint, 'The authorization endpoint');
  refuseAddress(allowed, metadata.token_endpoint, 'The token endpoint');
  if (registration !== undefined) {
    refuseAddress(allowed, registration, 'The registration endpoint');
  }
  if (revocation !== undefined) refuseAddress(allowed, revocation, 'The revocation endpoint');
}

function refuseAddress(allowed: AllowList, url: string, what: string): void {
  const checked = checkUrl(url, { schemes: ['https:', 'http:'], allowed, fragment: 'refused' });
  if (!checked.ok) throw new OauthFault('refused', `${what} ${checked.reason}`);
  refuseUnencrypted(checked.url, what);
}

/** Tokens, codes and secrets are sent only over TLS, except to addresses of this machine. */
function refuseUnencrypted({ protocol, hostname }: URL, what: string): void {
  const isLoopback = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);
  if (protocol === 'https:' || isLoopback) return;
  throw new OauthFault('refused', `${what} is not https`);
}

/** For requests with secrets: metadata that an earlier version has stored may name endpoints without TLS. */
export function fetchOverTls(fetch: Fetch): Fetch {
  return async (url, init) => {
    refuseUnencrypted(new URL(url), 'An endpoint of the authorization server');
    return fetch(url, init);
  };
}

function keptOf(metadata: AuthorizationServerMetadata): ServerMetadata {
  return Object.fromEntries(
    keptFields.map((name) => [name, (metadata as OAuthMetadata)[name]]),
  ) as ServerMetadata;
}

/** With the scope for which many servers give refresh tokens. */
function scopeOf(
  required: string | undefined,
  { scopes_supported: supported = [] }: ServerMetadata,
) {
  if (required === undefined || required === '') return undefined;
  const scopes = new Set(required.split(' ').filter((one) => one !== ''));
  if (supported.includes('offline_access')) scopes.add('offline_access');
  return [...scopes].join(' ').slice(0, scopeCharsMax);
}

/**
 * The endpoints of a server that publishes no metadata. By the revision 2025-03-26 of the Model Context Protocol it is its
 * own authorization server, with these paths at its root, and takes PKCE.
 */
function defaultMetadataOf(url: string): OAuthMetadata {
  const { origin } = new URL(url);
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
  };
}
