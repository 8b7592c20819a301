/** Accounts of organizations at MCP servers that ask for authorization: the authorization code flow. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  type AuthorizationServer,
  protect,
  startAuthorizationServer,
} from '../support/authorization-server.ts';
import { consoleFilesAt } from '../support/console-files.ts';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import { type McpTestServer, startMcpServer } from '../support/mcp-server.ts';
import { adminSecret, type Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { waitFor } from '../support/wait-for.ts';

const minute = 60_000;
const clock = manualClock();
let platform: Platform;
const keys: Record<string, string> = {};
beforeAll(async () => {
  platform = await startStaged({
    clock,
    environment: { SKILLS_ALLOW_CIDRS: '127.0.0.0/8' },
    parts: { consoleFiles: consoleFilesAt('/nowhere') },
  });
  for (const organization_id of ['acme', 'globex']) {
    keys[organization_id] = await platform.key({ organization_id });
  }
});
afterAll(() => platform.stop());

type Session = (method: string, path: string, body?: unknown) => ReturnType<Platform['request']>;

/** A session of the console, of the administrator or of a key, with its pages in an organization. */
async function session(
  organization = 'acme',
  secret = adminSecret,
  at = platform,
): Promise<Session> {
  const opened = await at.request('POST', '/console/session', { body: { secret } });
  const headers = {
    'x-skillwright-console': '1',
    'x-skillwright-organization': organization,
    cookie: (opened.headers.get('set-cookie') ?? '').split(';', 1)[0] as string,
  };
  return (method, path, body) =>
    at.request(method, path, { headers, ...(body !== undefined && { body }) });
}

let made = 0;
interface World {
  readonly server: McpTestServer;
  readonly by: AuthorizationServer;
  readonly name: string;
  readonly path: string;
  readonly admin: string;
  run(organization?: string): ReturnType<Platform['run']>;
  /** Begins an authorization, and agrees to it; what the browser brings back. */
  agreed(as: Session): Promise<Record<string, string>>;
  /** Connects an account of the session's organization; the administrator accepts what it is shown. */
  connect(as: Session): ReturnType<Session>;
  /** Accepts all versions in quarantine. */
  accept(): Promise<void>;
}

/** A server that asks for authorization. */
async function world(fields: Record<string, unknown> = {}): Promise<World> {
  const server = await startMcpServer();
  const by = await startAuthorizationServer();
  protect(server, by);
  made += 1;
  const name = `guarded-${made}`;
  const body = { name, organizations: ['*'], url: server.url, ...fields };
  const added = await platform.admin('POST', '/admin/mcp-servers', body);
  expect(added.status, added.text).toBe(201);
  expect(added.body).toMatchObject({ status: 'needs_authorization', skills: [] });
  const path = `/api/accounts/${name}`;
  const agreed = async (as: Session) => {
    const begun = await as('POST', `${path}/authorize`);
    expect(begun.status, begun.text).toBe(201);
    return (await by.agree(begun.body.authorization_url)).params;
  };
  const admin = `/admin/mcp-servers/${name}`;
  const accept = async () => {
    for (const one of (await platform.admin('GET', admin)).body.skills) {
      if (one.state !== 'quarantined') continue;
      const at = `${admin}/skills/${one.version}/${one.skill_name}/activate`;
      expect((await platform.admin('POST', at, { digest: one.digest })).status).toBe(200);
    }
  };
  return {
    ...{ server, by, name, path, admin, agreed, accept },
    run: (organization = 'acme') =>
      platform.run(keys[organization] ?? '', `mcp-${name}/v1.0/echo`, { text: 'a' }),
    async connect(as) {
      const connected = await as('POST', `${path}/complete`, await agreed(as));
      await accept();
      return connected;
    },
  };
}

describe('an account', () => {
  test('is connected in the console, and the runs of its organization have its token', async () => {
    const { server, by, name, path, admin, run, agreed, accept } = await world();
    const as = await session();
    expect((await as('GET', path)).body).toMatchObject({ status: 'not_connected' });
    const params = await agreed(as);
    expect(by.registrations).toMatchObject([
      {
        redirect_uris: [`${platform.url}/console/oauth/callback/${name}`],
        grant_types: ['authorization_code', 'refresh_token'],
      },
    ]);
    const { status, body } = await as('POST', `${path}/complete`, params);
    expect({ status, body }).toMatchObject({
      status: 200,
      body: { server: name, status: 'connected', issuer: by.origin, scope: 'read' },
    });
    expect(by.asked.map((form) => form.get('resource'))).toEqual([server.url]);
    const [skill] = (await platform.admin('GET', admin)).body.skills;
    expect(skill).toMatchObject({
      ...{ skill: `mcp-${name}/v1.0/echo`, state: 'quarantined' },
      organizations: ['acme'],
    });
    await accept();
    expect((await run()).body.status).toBe('completed');
    expect(server.headers.at(-1)?.authorization).toBe(`Bearer ${by.given.at(-1)}`);
    const stored = JSON.stringify(
      await platform.database.read.kysely.selectFrom('remote_accounts').selectAll().execute(),
    );
    expect(stored).not.toContain(by.given[0]);
    expect(JSON.stringify([body, (await platform.admin('GET', admin)).body])).not.toContain(
      by.given[0],
    );
  });

  test('shows the address of its server without query and path, which may be secrets of the operator', async () => {
    const { server, admin, path, by } = await world();
    const url = `${server.url}?key=secret-of-the-operator`;
    const change = { url, organizations: ['*'] };
    expect((await platform.admin('PUT', admin, change)).body).toMatchObject({ url });
    const as = await session();

    const one = await as('GET', path);
    const list = await as('GET', '/api/accounts');
    const begun = await as('POST', `${path}/authorize`);

    expect(one.body.url).toBe(server.url);
    expect(begun.status, begun.text).toBe(201);
    expect([one, list, begun].map(({ text }) => text).join()).not.toContain('secret-of');
    const { params } = await by.agree(begun.body.authorization_url);
    expect((await as('POST', `${path}/complete`, params)).body.status).toBe('connected');
    const { origin } = new URL(server.url);
    await platform.admin('PUT', admin, { ...change, url: `${origin}/mcp/secret-of-the-operator` });
    expect((await as('GET', path)).body.url).toBe(origin);
  });

  test('is that of one organization: its skills do not exist for another, until that has connected one', async () => {
    const { run, connect, by } = await world();
    expect((await connect(await session('acme'))).status).toBe(200);
    expectRefusal(await run('globex'), 404, 'skill_not_found');
    expect((await connect(await session('globex'))).status).toBe(200);
    expect((await run('globex')).body.status).toBe('completed');
    expect(new Set(by.given).size).toBe(2);
  });

  test('is connected by the holder of a key with the scope of the server', async () => {
    const { name, path, connect } = await world();
    const scoped = { organization_id: 'acme', scopes: [`mcp-${name}`] };
    expect((await connect(await session('acme', await platform.key(scoped)))).status).toBe(200);
    const other = await session('acme', await platform.key({ ...scoped, scopes: ['util'] }));
    expectRefusal(await other('POST', `${path}/authorize`), 403, 'insufficient_scope');
    expect((await other('GET', '/api/accounts')).body.data).toEqual([]);
    const withKey = await platform.request('POST', `${path}/authorize`, {
      key: keys['acme'] ?? '',
    });
    expectRefusal(withKey, 409, 'conflict');
  });

  test('has the client that the operator has registered', async () => {
    const server = await startMcpServer();
    const by = await startAuthorizationServer();
    protect(server, by);
    by.clients.set('of-the-operator', 'the-secret-of-the-operator');
    const oauth = {
      ...{ grant: 'authorization_code', client_id: 'of-the-operator', issuer: by.origin },
      ...{ client_secret: 'the-secret-of-the-operator', scope: 'write' },
    };
    const body = { name: 'registered', organizations: ['acme'], url: server.url, oauth };
    const added = await platform.admin('POST', '/admin/mcp-servers', body);
    expect(added.body.oauth).toEqual({
      ...{ grant: 'authorization_code', client_id: 'of-the-operator', has_client_secret: true },
      ...{ issuer: by.origin, scope: 'write' },
    });
    expect(server.asked).toEqual([]);
    const as = await session();
    const begun = await as('POST', '/api/accounts/registered/authorize');
    const { params } = await by.agree(begun.body.authorization_url);
    const account = await as('POST', '/api/accounts/registered/complete', params);
    expect(account.body).toMatchObject({ client_id: 'of-the-operator', scope: 'write' });
    expect(by.registrations).toEqual([]);
    const other = { ...body, name: 'elsewhere', oauth: { ...oauth, issuer: 'https://x.example' } };
    await platform.admin('POST', '/admin/mcp-servers', other);
    const refused = await as('POST', '/api/accounts/elsewhere/authorize');
    expectRefusal(refused, 409, 'conflict');
    expect(refused.body.message).toContain('takes no tokens of https://x.example');
  });

  test('has a metadata document as its client where the authorization server reads these', async () => {
    const base = 'https://skills.example.com';
    const environment = { SKILLS_ALLOW_CIDRS: '127.0.0.0/8', PUBLIC_URL: base };
    const other = await startStaged({
      ...{ clock, environment, parts: { consoleFiles: consoleFilesAt('/nowhere') } },
    });
    onTestFinished(() => other.stop());
    const server = await startMcpServer();
    const by = await startAuthorizationServer();
    protect(server, by);
    by.metadata['client_id_metadata_document_supported'] = true;
    await other.admin('POST', '/admin/mcp-servers', { name: 'known', url: server.url });
    const as = await session('default', adminSecret, other);
    const begun = await as('POST', '/api/accounts/known/authorize');
    const { at, params } = await by.agree(begun.body.authorization_url);
    expect(at).toBe(`${base}/console/oauth/callback/known`);
    const client_id = `${base}/oauth/clients/known`;
    const account = await as('POST', '/api/accounts/known/complete', params);
    expect(account.body).toMatchObject({ status: 'connected', client_id });
    expect(by.registrations).toEqual([]);
    const document = await other.request('GET', '/oauth/clients/known');
    expect(document.body).toMatchObject({ client_id, redirect_uris: [at] });
    expect((await platform.request('GET', '/oauth/clients/known')).status).toBe(404);
  });

  test('is disconnected, and its tokens are revoked', async () => {
    const { by, name, path, admin, run, connect } = await world();
    const as = await session();
    await connect(as);
    const list = `${admin}/accounts`;
    expect((await platform.admin('GET', list)).body).toMatchObject({
      total: 1,
      data: [{ organization_id: 'acme', status: 'connected' }],
    });
    expect((await as('DELETE', path)).status).toBe(204);
    expect(by.revoked).toHaveLength(2);
    expectRefusal(await run(), 404, 'skill_not_found');
    const [lost] = (await platform.admin('GET', admin)).body.skills;
    expect(lost).toMatchObject({ state: 'withdrawn', organizations: [] });
    expect((await platform.admin('GET', admin)).body.status).toBe('needs_authorization');
    expectRefusal(await as('DELETE', path), 404, 'not_found');
    await connect(as);
    expect((await platform.admin('DELETE', `${list}/acme`)).status).toBe(204);
    await connect(as);
    expect((await platform.admin('DELETE', admin)).status).toBe(204);
    expect(by.revoked).toHaveLength(6);
    expectRefusal(await as('GET', path), 404, 'not_found');
    const left = platform.database.read.kysely.selectFrom('remote_oauth_clients').selectAll();
    const rows = await left.execute();
    expect(rows.filter(({ issuer }) => issuer === by.origin)).toEqual([]);
    expect(name).toContain('guarded');
  });

  test('that is disconnected during a refresh leaves no tools behind', async () => {
    const { server, path, admin, run, connect } = await world();
    const as = await session();
    await connect(as);
    const answer = Promise.withResolvers<void>();
    server.answers['tools/list'] = async () => {
      await answer.promise;
      return { tools: server.tools };
    };
    const lists = () => server.asked.filter((one) => one === 'tools/list').length;
    const before = lists();
    const refreshing = platform.admin('POST', `${admin}/refresh`);
    await waitFor(() => lists() > before || null, { describe: 'the refresh with the account' });

    const disconnecting = as('DELETE', path);
    const skillOf = async () => (await platform.admin('GET', admin)).body.skills[0];
    await waitFor(async () => (await skillOf()).state === 'withdrawn' || null, {
      describe: 'the end of the disconnection',
    });
    answer.resolve();
    await Promise.all([refreshing, disconnecting]);

    expect(await skillOf()).toMatchObject({ state: 'withdrawn' });
    expectRefusal(await run(), 404, 'skill_not_found');
  });

  test('whose process ended during the disconnection loses its tools at the next refresh', async () => {
    const { admin, run, connect } = await world();
    await connect(await session());
    await connect(await session('globex'));
    // The account is gone, and its organization still has its versions.
    await platform.database.write(async (tx) => {
      await tx.kysely.deleteFrom('remote_accounts').where('organization_id', '=', 'acme').execute();
    });

    await platform.admin('POST', `${admin}/refresh`);

    expectRefusal(await run('acme'), 404, 'skill_not_found');
    expect((await run('globex')).body.status).toBe('completed');
  });
});

describe('a token', () => {
  test('that is about to end is replaced, and so is its refresh token', async () => {
    const { by, run, connect } = await world();
    await connect(await session());
    clock.advance(59 * minute + 1);
    expect((await run()).body.status).toBe('completed');
    clock.advance(60 * minute);
    expect((await run()).body.status).toBe('completed');
    const forms = by.asked.map((form) => form.get('grant_type'));
    expect(forms).toEqual(['authorization_code', 'refresh_token', 'refresh_token']);
  });

  test('that the server refuses is replaced', async () => {
    const { server, by, run, connect } = await world();
    await connect(await session());
    const first = by.given.at(-1);
    const { guard } = server;
    server.guard = (request, response) => {
      if (request.headers.authorization !== `Bearer ${first}`) return guard(request, response);
      response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end();
      return true;
    };
    expect((await run()).body.status).toBe('completed');
    expect(by.given).toHaveLength(2);
  });

  test('that was withdrawn ends the account, until it is connected again', async () => {
    const { by, path, admin, run, connect } = await world();
    const as = await session();
    await connect(as);
    by.withdrawAll();
    const { error } = (await run()).body;
    expect(error.code).toBe('missing_credentials');
    expect(error.message).toContain('invalid_grant');
    const { body } = await as('GET', path);
    expect(body).toMatchObject({ status: 'needs_authorization' });
    expect(body.fault).toContain('invalid_grant');
    expect((await platform.admin('POST', `${admin}/refresh`)).body.status).toBe(
      'needs_authorization',
    );
    expect((await connect(as)).body).toMatchObject({ status: 'connected', fault: null });
    expect((await run()).body.status).toBe('completed');
  });

  test('is not sent to another address than that with which the account was connected', async () => {
    const { server, path, admin, run, connect } = await world();
    const as = await session();
    await connect(as);
    const other = await startMcpServer();
    await platform.admin('PUT', admin, { url: other.url });
    expect((await run()).body.error.message).toContain('The address of the server was changed');
    expect(other.headers.every(({ authorization }) => authorization === undefined)).toBe(true);
    await platform.admin('PUT', admin, { url: server.url });
    expect((await as('GET', path)).body.status).toBe('connected');
  });

  test('with too few scopes is asked for anew, with those that are missing', async () => {
    const { server, by, run, path, connect } = await world();
    const as = await session();
    await connect(as);
    server.answers['tools/call'] = (_params, _message, response) => {
      const challenge = 'Bearer error="insufficient_scope", scope="delete"';
      response.writeHead(403, { 'www-authenticate': challenge }).end();
    };
    expect((await run()).body.error).toMatchObject({
      code: 'missing_credentials',
      message: expect.stringContaining('It asks for the scope delete'),
    });
    expect((await as('GET', path)).body.status).toBe('needs_authorization');
    expect((await connect(as)).body).toMatchObject({ status: 'connected', scope: 'read delete' });
    expect(by.given).toHaveLength(2);
  });

  test('and its refresh token are kept out of what a server returns', async () => {
    const { server, by, run, connect } = await world();
    await connect(await session());
    server.answers['tools/call'] = () => ({
      content: [{ type: 'text', text: `Your token is ${by.given.at(-1)}` }],
    });
    expect((await run()).body.output.content[0].text).toBe('Your token is ***');
  });
});

describe('an answer of an authorization server', () => {
  test('is refused with an unknown state, in another session or organization, and later', async () => {
    const { by, path, agreed } = await world();
    const as = await session();
    const complete = (session: Session, params: object) =>
      session('POST', `${path}/complete`, params);
    const params = await agreed(as);
    expectInvalid(await complete(as, { ...params, state: 'acme.unknown' }), 'state');
    clock.advance(1);
    expectInvalid(await complete(await session(), params), 'state');
    expectInvalid(await complete(await session('globex'), params), 'state');
    clock.advance(10 * minute);
    expectInvalid(await complete(as, params), 'state');
    expect(by.asked).toEqual([]);
  });

  test('is taken once', async () => {
    const { by, path, agreed } = await world();
    const as = await session();
    const params = await agreed(as);
    expect((await as('POST', `${path}/complete`, params)).status).toBe(200);
    expectInvalid(await as('POST', `${path}/complete`, params), 'state');
    expect(by.asked).toHaveLength(1);
  });

  test('is refused with another issuer, or without one where it says that it sends it', async () => {
    const { by, path, agreed } = await world();
    const as = await session();
    for (const iss of ['https://other.example', null]) {
      by.iss = iss;
      const refused = await as('POST', `${path}/complete`, await agreed(as));
      expectRefusal(refused, 409, 'conflict');
      expect(refused.body.message).toContain('is not that of the authorization server');
    }
    expect(by.asked).toEqual([]);
  });

  test('is refused at the redirect address of another server (mix-up)', async () => {
    const honest = await world();
    const hostile = await world();
    for (const { by } of [honest, hostile]) {
      by.metadata['authorization_response_iss_parameter_supported'] = undefined;
      by.iss = null;
    }
    const as = await session();
    await as('POST', `${honest.path}/authorize`);
    const begun = await as('POST', `${hostile.path}/authorize`);
    const asked = new URL(begun.body.authorization_url);
    // The hostile server sends the browser on to the honest one, with the client that is known there.
    asked.host = new URL(honest.by.origin).host;
    asked.searchParams.set('client_id', [...honest.by.clients.keys()][0] ?? '');
    const back = `${platform.url}/console/oauth/callback/${honest.name}`;
    asked.searchParams.set('redirect_uri', back);
    const { params } = await honest.by.agree(asked.href);
    expectInvalid(await as('POST', `${honest.path}/complete`, params), 'state');
    expect(hostile.by.asked).toEqual([]);
  });

  test('that is a refusal is told', async () => {
    const { path, agreed } = await world();
    const as = await session();
    const { code: _, ...params } = await agreed(as);
    const denied = { ...params, error: 'access_denied', error_description: 'Not today' };
    const refused = await as('POST', `${path}/complete`, denied);
    expectRefusal(refused, 409, 'conflict');
    expect(refused.body.message).toContain('was not granted: access_denied (Not today)');
  });

  test('whose code was used before gives no account', async () => {
    const { by, path, agreed } = await world();
    const as = await session();
    const { code } = await agreed(as);
    const first = await agreed(as);
    expect((await as('POST', `${path}/complete`, { ...first, code })).status).toBe(409);
    expect((await as('GET', path)).body.status).toBe('not_connected');
    expect(by.given).toEqual([]);
  });
});

describe('an authorization server', () => {
  test.each([
    ['without PKCE', { code_challenge_methods_supported: undefined }, 'does not support PKCE'],
    ['with plain PKCE', { code_challenge_methods_supported: ['plain'] }, 'does not support PKCE'],
    ['of another issuer', { issuer: 'https://other.example' }, 'Issuer mismatch'],
    ['that sends tokens over plain HTTP', { token_endpoint: 'http://x.example/t' }, 'is not https'],
    [
      'that registers clients over plain HTTP',
      { registration_endpoint: 'http://x.example/r' },
      'registration endpoint is not https',
    ],
    [
      'that revokes tokens over plain HTTP',
      { revocation_endpoint: 'http://x.example/r' },
      'revocation endpoint is not https',
    ],
    [
      'at a private address',
      { authorization_endpoint: 'https://10.0.0.1/a' },
      'authorization endpoint',
    ],
    ['that registers no clients', { registration_endpoint: undefined }, 'set its client_id'],
  ])('%s is refused', async (_name, metadata, message) => {
    const { by, path } = await world();
    Object.assign(by.metadata, metadata);
    const refused = await (await session())('POST', `${path}/authorize`);
    expectRefusal(refused, 409, 'conflict');
    expect(refused.body.message).toContain(message);
  });

  test('is not read from resource metadata over plain HTTP of another host', async () => {
    const { server, path } = await world();
    server.guard = (_request, response) => {
      const challenge = 'Bearer resource_metadata="http://x.example/resource"';
      response.writeHead(401, { 'www-authenticate': challenge }).end();
      return true;
    };
    const refused = await (await session())('POST', `${path}/authorize`);
    expectRefusal(refused, 409, 'conflict');
    expect(refused.body.message).toContain('resource metadata is not https');
  });

  test('that answers 10 MB, or is broken, costs a sentence and no account', async () => {
    const { by, path, agreed } = await world();
    const as = await session();
    const complete = async () => as('POST', `${path}/complete`, await agreed(as));
    by.tokens = 'huge';
    expect((await complete()).body.message).toContain('is longer than 262144 bytes');
    by.tokens = 'broken';
    expectRefusal(await complete(), 502, 'upstream_unavailable');
    by.tokens = () => ({ access_token: 'a', token_type: 'mac' });
    expect((await complete()).body.message).toContain('of the type mac');
    by.tokens = () => ({ access_token: 'a\nb', token_type: 'Bearer' });
    expect((await complete()).body.message).toContain('a token that cannot be used');
    expect((await as('GET', path)).body.status).toBe('not_connected');
  });

  test('that is named by none costs a sentence that says what to set', async () => {
    const { server, by, path } = await world();
    server.paths['/.well-known/oauth-protected-resource/mcp'] = () => ({ resource: server.url });
    const refused = await (await session())('POST', `${path}/authorize`);
    expectRefusal(refused, 409, 'conflict');
    expect(refused.body.message).toContain('names no authorization server');
    expect(by.registrations).toEqual([]);
  });

  test('that gives no new tokens to one organization fails no run of another', async () => {
    const { by, connect, run, admin } = await world();
    await connect(await session('acme'));
    clock.advance(50 * minute);
    await connect(await session('globex'));
    by.tokens = 'broken';
    clock.advance(11 * minute);
    expect((await run('globex')).body.status).toBe('completed');
    const { error } = (await run('acme')).body;
    expect(error.code).toBe('upstream_unavailable');
    expect(error.message).toContain('The account of acme at the server');
    // With no account at all, the fault of one is shown to the administrator alone.
    clock.advance(50 * minute);
    const { body: job } = await run('globex');
    expect(job.error.code).toBe('upstream_unavailable');
    expect(job.error.message).toContain('The service could not be refreshed with the accounts');
    expect(job.error.message).not.toContain('acme');
    const { body } = await platform.admin('GET', admin);
    expect(body.fault).toContain('could not be renewed');
  });

  test('that repeats what it was sent shows no code, verifier or secret of the client', async () => {
    const { by, path, agreed } = await world();
    const as = await session();
    const answer = await agreed(as);
    by.tokens = (form) => ({
      error: 'invalid_request',
      error_description: `No: ${form.get('code')?.replace('-', '-\u200b')} ${form.get('code_verifier')}`,
    });
    const { body, text } = await as('POST', `${path}/complete`, answer);
    expect(body.message).toContain('No: *** ***');
    expect(text).not.toContain(answer['code']);
  });

  test('that publishes no metadata is the server itself, with the default endpoints of 2025-03-26', async () => {
    const { server, name, path, run, accept } = await world();
    const { origin } = new URL(server.url);
    const asked: URLSearchParams[] = [];
    Object.assign(server.paths, {
      '/.well-known/oauth-protected-resource/mcp': () => ({ resource: server.url }),
      '/register': (body: string) => ({ ...JSON.parse(body), client_id: 'c', client_secret: 's' }),
      '/token': (body: string) => {
        asked.push(new URLSearchParams(body));
        return { access_token: 'the-token-of-acme', token_type: 'Bearer' };
      },
    });
    server.guard = ({ headers, url }, response) => {
      if (url === '/mcp' && headers.authorization === 'Bearer the-token-of-acme') return false;
      response.writeHead(url === '/mcp' ? 401 : 404).end();
      return true;
    };
    const as = await session();
    const { body } = await as('POST', `${path}/authorize`);
    const at = new URL(body.authorization_url);
    expect(`${at.origin}${at.pathname}`).toBe(`${origin}/authorize`);
    expect(at.searchParams.get('code_challenge_method')).toBe('S256');
    const answer = { state: at.searchParams.get('state'), code: 'the-code' };
    const { body: account } = await as('POST', `${path}/complete`, answer);
    expect(account).toMatchObject({ server: name, status: 'connected', issuer: origin });
    expect(asked[0]?.get('code_verifier')).toEqual(expect.any(String));
    await accept();
    expect((await run()).body.status).toBe('completed');
  });

  test('of another server than that which was named by the server is not asked', async () => {
    const { server, path } = await world();
    server.paths['/.well-known/oauth-protected-resource/mcp'] = () => ({
      resource: 'https://other.example/mcp',
      authorization_servers: ['https://other.example'],
    });
    const refused = await (await session())('POST', `${path}/authorize`);
    expectRefusal(refused, 409, 'conflict');
    expect(refused.body.message).toContain('which is another one');
  });
});
