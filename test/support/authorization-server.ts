/**
 * An authorization server of OAuth 2.1, with PKCE, dynamic registration, rotating refresh tokens and revocation. It keeps
 * the rules strictly, but for those that a test tells it to break.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';
import type { McpTestServer } from './mcp-server.ts';

interface Grant {
  readonly clientId: string;
  readonly resource: string | null;
  readonly scope: string | null;
  isRevoked: boolean;
}

interface Code extends Grant {
  readonly challenge: string;
  readonly redirectUri: string;
  /** The tokens that it gave, once it was used. */
  used: Grant | undefined;
}

export interface AuthorizationServer {
  readonly origin: string;
  /** Of the metadata: what it says otherwise than usual; undefined leaves a field out. */
  readonly metadata: Record<string, unknown>;
  /** Seconds of an access token; undefined leaves them out. */
  lifetime: number | undefined;
  /** `iss` of its redirects; null for none. */
  iss: string | null;
  /** How its token endpoint misbehaves. */
  tokens:
    | 'well'
    | 'hang'
    | 'huge'
    | 'broken'
    | ((form: URLSearchParams) => object | undefined | Promise<undefined>);
  readonly registrations: Record<string, unknown>[];
  /** The forms that the token endpoint got. */
  readonly asked: URLSearchParams[];
  readonly revoked: string[];
  /** Clients by id, with their secrets; null for none. */
  readonly clients: Map<string, string | null>;
  isValid(authorization: string | undefined): boolean;
  /** Access tokens that were given, the newest last. */
  readonly given: string[];
  /** Ends all grants, as a person does who withdraws them. */
  withdrawAll(): void;
  /** What a browser brings back from an authorization url once its person has agreed: the parameters and where. */
  agree(url: string): Promise<{ at: string; params: Record<string, string> }>;
}

export async function startAuthorizationServer(): Promise<AuthorizationServer> {
  const codes = new Map<string, Code>();
  const access = new Map<string, Grant>();
  const refresh = new Map<string, { grant: Grant; isUsed: boolean }>();
  const http = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  onTestFinished(async () => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  });
  const server: AuthorizationServer = {
    ...{ origin, metadata: {}, lifetime: 3_600, iss: origin, tokens: 'well' },
    ...{ registrations: [], asked: [], revoked: [], clients: new Map(), given: [] },
    isValid(authorization) {
      const grant = access.get(/^Bearer (.+)$/.exec(authorization ?? '')?.[1] ?? '');
      return grant !== undefined && !grant.isRevoked;
    },
    withdrawAll() {
      for (const grant of access.values()) grant.isRevoked = true;
      for (const { grant } of refresh.values()) grant.isRevoked = true;
    },
    async agree(url) {
      const answer = await fetch(url, { redirect: 'manual' });
      const location = answer.headers.get('location');
      if (location === null) throw new Error(`${answer.status}: ${await answer.text()}`);
      const at = new URL(location);
      const params = Object.fromEntries(at.searchParams);
      at.search = '';
      return { at: at.href, params };
    },
  };
  const json = (response: ServerResponse, body: unknown, status = 200) =>
    void response
      .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
      .end(JSON.stringify(body));
  const refused = (response: ServerResponse, error: string, status = 400) =>
    json(response, { error, error_description: `It is ${error}` }, status);

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('error', () => {});
    const url = new URL(request.url ?? '/', origin);
    const body = await text(request);
    if (url.pathname === '/.well-known/oauth-authorization-server') return json(response, about());
    if (url.pathname === '/authorize') return authorize(url.searchParams, response);
    if (url.pathname === '/register') return register(JSON.parse(body), response);
    const form = new URLSearchParams(body);
    if (url.pathname === '/token') return token(request, form, response);
    if (url.pathname === '/revoke') return revoke(request, form, response);
    response.writeHead(404).end();
  }

  const about = () => ({
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    revocation_endpoint: `${origin}/revoke`,
    response_types_supported: ['code'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'none'],
    authorization_response_iss_parameter_supported: true,
    ...server.metadata,
  });

  function register(asked: Record<string, unknown>, response: ServerResponse): void {
    server.registrations.push(asked);
    const clientId = `client-${server.registrations.length}`;
    const secret = asked['token_endpoint_auth_method'] === 'none' ? null : `secret-${randomUUID()}`;
    server.clients.set(clientId, secret);
    const given = secret === null ? {} : { client_secret: secret, client_secret_expires_at: 0 };
    json(response, { ...asked, client_id: clientId, ...given }, 201);
  }

  function authorize(asked: URLSearchParams, response: ServerResponse): void {
    const of = (name: string) => asked.get(name) ?? '';
    const isKnown = server.clients.has(of('client_id')) || of('client_id').startsWith('https:');
    const isProper = of('response_type') === 'code' && of('code_challenge_method') === 'S256';
    if (!isKnown || !isProper) return void refused(response, 'invalid_request');
    const code = `code-${randomUUID()}`;
    codes.set(code, {
      ...{ clientId: of('client_id'), challenge: of('code_challenge') },
      ...{ redirectUri: of('redirect_uri'), resource: asked.get('resource') },
      ...{ scope: asked.get('scope'), isRevoked: false, used: undefined },
    });
    const back = new URL(of('redirect_uri'));
    back.searchParams.set('code', code);
    back.searchParams.set('state', of('state'));
    if (server.iss !== null) back.searchParams.set('iss', server.iss);
    response.writeHead(302, { location: back.href }).end();
  }

  /** The client of a request, if it proves that it is one. */
  function clientOf({ headers }: IncomingMessage, form: URLSearchParams): string | undefined {
    const basic = /^Basic (.+)$/.exec(headers.authorization ?? '')?.[1];
    const [id, secret] =
      basic === undefined
        ? [form.get('client_id') ?? '', form.get('client_secret')]
        : Buffer.from(basic, 'base64').toString().split(':').map(decodeURIComponent);
    const isProven = id !== undefined && server.clients.get(id) === (secret ?? null);
    return isProven || id?.startsWith('https:') ? id : undefined;
  }

  async function token(
    request: IncomingMessage,
    form: URLSearchParams,
    response: ServerResponse,
  ): Promise<void> {
    server.asked.push(form);
    if (server.tokens === 'hang') return;
    if (server.tokens === 'broken') return void response.writeHead(500).end('broken');
    if (server.tokens === 'huge') {
      return void json(response, { access_token: 'x'.repeat(10_000_000), token_type: 'Bearer' });
    }
    const own = typeof server.tokens === 'function' ? await server.tokens(form) : undefined;
    if (own !== undefined) return void json(response, own);
    const client = clientOf(request, form);
    if (client === undefined) return void refused(response, 'invalid_client', 401);
    const isCode = form.get('grant_type') === 'authorization_code';
    const grant = isCode ? ofCode(client, form) : ofRefreshToken(client, form);
    if (grant === undefined) return void refused(response, 'invalid_grant');
    const accessToken = `access-${randomUUID()}`;
    const refreshToken = `refresh-${randomUUID()}`;
    access.set(accessToken, grant);
    refresh.set(refreshToken, { grant, isUsed: false });
    server.given.push(accessToken);
    json(response, {
      ...{ access_token: accessToken, refresh_token: refreshToken, token_type: 'Bearer' },
      ...(server.lifetime !== undefined && { expires_in: server.lifetime }),
      ...(grant.scope !== null && { scope: grant.scope }),
    });
  }

  function ofCode(client: string, form: URLSearchParams): Grant | undefined {
    const code = codes.get(form.get('code') ?? '');
    if (code === undefined || code.clientId !== client) return undefined;
    if (code.used !== undefined) {
      code.used.isRevoked = true;
      return undefined;
    }
    const digest = createHash('sha256').update(form.get('code_verifier') ?? '');
    const isProper =
      digest.digest('base64url') === code.challenge &&
      form.get('redirect_uri') === code.redirectUri &&
      form.get('resource') === code.resource;
    if (!isProper) return undefined;
    const { clientId, resource, scope } = code;
    code.used = { clientId, resource, scope, isRevoked: false };
    return code.used;
  }

  /** A refresh token is good for one use; one that is used again ends the grant. */
  function ofRefreshToken(client: string, form: URLSearchParams): Grant | undefined {
    const known = refresh.get(form.get('refresh_token') ?? '');
    if (known === undefined || known.grant.clientId !== client) return undefined;
    if (known.isUsed) known.grant.isRevoked = true;
    known.isUsed = true;
    return known.grant.isRevoked ? undefined : known.grant;
  }

  function revoke(request: IncomingMessage, form: URLSearchParams, response: ServerResponse): void {
    if (clientOf(request, form) === undefined) return void refused(response, 'invalid_client', 401);
    const given = form.get('token') ?? '';
    server.revoked.push(given);
    const grant = access.get(given) ?? refresh.get(given)?.grant;
    if (grant !== undefined) grant.isRevoked = true;
    response.writeHead(200).end();
  }

  return server;
}

/** Has an MCP server take the tokens of an authorization server alone. */
export function protect(server: McpTestServer, by: AuthorizationServer): void {
  const { origin } = new URL(server.url);
  const metadata = '/.well-known/oauth-protected-resource/mcp';
  server.paths[metadata] = () => ({
    resource: server.url,
    authorization_servers: [by.origin],
    scopes_supported: ['read', 'write'],
  });
  server.guard = ({ headers }, response) => {
    if (by.isValid(headers.authorization)) return false;
    const challenge = `Bearer resource_metadata="${origin}${metadata}", scope="read"`;
    response.writeHead(401, { 'www-authenticate': challenge }).end();
    return true;
  };
}
