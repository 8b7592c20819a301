import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newId } from '../../src/kernel/ids.ts';
import {
  expectInvalid,
  expectNoRateLimitHeaders,
  expectRateLimitHeaders,
  expectRefusal,
} from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import { adminSecret, type Platform } from '../support/platform.ts';
import { openRaw, sendRaw } from '../support/raw-http.ts';
import { isInstalled, migratedDatabase } from '../support/shared-servers.ts';
import { acting, play, startStaged } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

const agents = (headers: Record<string, string>, path = '/api/agents') =>
  platform.request('GET', path, { headers });
const revoke = (keyId: string) => platform.admin('DELETE', `/admin/api-keys/${keyId}`);
/** Two seconds from now by the platform's clock. */
const soon = () => new Date(clock.now() + 2_000).toISOString();
const randomId = '0198c0de-0000-7000-8000-000000000000';

const keyPaths: [string, string][] = [
  ['GET', '/api/skills'],
  ['GET', '/api/skills/staged/v1.0/play'],
  ['POST', '/api/staged/v1.0/play'],
  ['GET', '/api/agents'],
  ['POST', '/api/agents'],
  ['GET', '/api/agents/default'],
  ['PUT', '/api/agents/default'],
  ['DELETE', '/api/agents/default'],
  ['GET', '/api/jobs'],
  ['GET', `/api/jobs/${randomId}`],
  ['GET', `/api/jobs/${randomId}/events`],
  ['POST', `/api/jobs/${randomId}/cancel`],
  ['POST', `/api/jobs/${randomId}/retry`],
  ['GET', '/api/conversations'],
  ['GET', `/api/conversations/${randomId}`],
  ['GET', `/api/conversations/${randomId}/messages`],
  ['GET', `/api/conversations/${randomId}/token-usage`],
];
const adminPaths: [string, string][] = [
  ['GET', '/admin/api-keys'],
  ['POST', '/admin/api-keys'],
  ['DELETE', `/admin/api-keys/${randomId}`],
  ['GET', '/admin/left-out-skills'],
  ['POST', '/admin/skills/staged/v1.0/play/deprecate'],
  ['POST', '/admin/skills/staged/v1.0/play/activate'],
];

describe('rule 1: a request to an API-key endpoint without a key gets 401 authentication_required', () => {
  test.each(keyPaths)('%s %s', async (method, path) => {
    const answer = await platform.request(method, path);

    expectRefusal(answer, 401, 'authentication_required');
    expectNoRateLimitHeaders(answer);
  });

  test.each(['', ' ', ' \t '])('so does one whose key is blank: %j', async (key) => {
    expectRefusal(await agents({ 'x-api-key': key }), 401, 'authentication_required');
  });

  test('a key anywhere but in x-api-key is no key', async () => {
    const { key } = await newTenant(platform);

    for (const headers of [
      { authorization: `Bearer ${key}` },
      { authorization: key },
      { cookie: `x-api-key=${key}` },
      { 'api-key': key },
      { 'x-admin-secret': adminSecret },
    ]) {
      expectRefusal(await agents(headers as never), 401, 'authentication_required');
    }
    for (const query of [`x-api-key=${key}`, `api_key=${key}`, `key=${key}`]) {
      expectRefusal(await agents({}, `/api/agents?${query}`), 401, 'authentication_required');
    }
  });
});

describe('rule 2: a key that is unknown or revoked gets 401 invalid_api_key', () => {
  test('unknown, truncated, lengthened or in another case', async () => {
    const { key } = await newTenant(platform);

    for (const wrong of [
      ...['x', 'sk_', `sk_${'A'.repeat(43)}`, key.slice(0, -1), key.slice(1), `${key}=`],
      ...[`${key}x`, `${key} x`, `x ${key}`, key.toUpperCase(), key.toLowerCase(), `"${key}"`],
      ...[adminSecret, `Bearer ${key}`, 'null', 'x'.repeat(8_000), `${key}, ${key}`, 'é'],
    ]) {
      const answer = await agents({ 'x-api-key': wrong });

      expectRefusal(answer, 401, 'invalid_api_key');
      expectNoRateLimitHeaders(answer);
    }
  });

  test('a revoked key no longer authenticates any request', async () => {
    const { key, keyId } = await newTenant(platform);
    expect((await agents({ 'x-api-key': key })).status).toBe(200);

    await revoke(keyId);

    for (const [method, path] of keyPaths) {
      expectRefusal(await platform.request(method, path, { key }), 401, 'invalid_api_key');
    }
  });

  test('nor does it on a connection that is open since before', async () => {
    const { key, keyId } = await newTenant(platform);
    const connection = openRaw(platform.url);
    const request = `GET /api/agents HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\n\r\n`;
    connection.send(request);
    await connection.answers(1);

    await revoke(keyId);
    connection.send(request);

    const [before, after] = await connection.answers(2);
    connection.destroy();
    expect(before?.status).toBe(200);
    expectRefusal(after!, 401, 'invalid_api_key');
  });

  test('the other keys of the organization go on', async () => {
    const first = await newTenant(platform);
    const second = await newTenant(platform, { organization_id: first.organization });

    await revoke(first.keyId);

    expect((await second.get('/api/agents')).status).toBe(200);
  });
});

describe('rule 3: a key past its expires_at gets 401 api_key_expired', () => {
  test('it works until then, to the millisecond', async () => {
    const { key } = await newTenant(platform, { expires_at: soon() });
    clock.advance(1_999);
    expect((await agents({ 'x-api-key': key })).status).toBe(200);

    clock.advance(1);

    const answer = await agents({ 'x-api-key': key });
    expectRefusal(answer, 401, 'api_key_expired');
    expectNoRateLimitHeaders(answer);
  });

  test('revoked and expired is invalid_api_key: rule 2 comes before rule 3', async () => {
    const { key, keyId } = await newTenant(platform, { expires_at: soon() });
    clock.advance(5_000);
    expectRefusal(await agents({ 'x-api-key': key }), 401, 'api_key_expired');

    await revoke(keyId);

    expectRefusal(await agents({ 'x-api-key': key }), 401, 'invalid_api_key');
  });

  test('the listing still shows it as enabled: it was never revoked', async () => {
    const { keyId } = await newTenant(platform, { expires_at: soon() });
    clock.advance(5_000);

    const { body } = await platform.admin('GET', '/admin/api-keys');

    expect(body.find((one: { id: string }) => one.id === keyId)).toMatchObject({ enabled: true });
  });
});

describe('rule 4: a wrong admin secret gets 401 invalid_admin_secret', () => {
  const ask = (headers: Record<string, string>) =>
    platform.request('GET', '/admin/api-keys', { headers });

  test.each(adminPaths)('%s %s', async (method, path) => {
    const headers = { authorization: 'Bearer wrong' };

    expectRefusal(await platform.request(method, path, { headers }), 401, 'invalid_admin_secret');
  });

  test.each(adminPaths)('and none at all authentication_required: %s %s', async (method, path) => {
    expectRefusal(await platform.request(method, path), 401, 'authentication_required');
  });

  test('empty, a part, in another case, too long, or of another scheme', async () => {
    for (const secret of [
      ...['', ' ', 'x', adminSecret.slice(0, -1), `${adminSecret}x`, adminSecret.toUpperCase()],
      ...[`${adminSecret} ${adminSecret}`, 'x'.repeat(8_000), 'undefined', 'null', 'é'],
    ]) {
      expectRefusal(await ask({ authorization: `Bearer ${secret}` }), 401, 'invalid_admin_secret');
      expectRefusal(await ask({ 'x-admin-secret': secret }), 401, 'invalid_admin_secret');
    }
    const basic = Buffer.from(`admin:${adminSecret}`).toString('base64');
    for (const authorization of [
      ...['Bearer', '', adminSecret, `Basic ${basic}`, `Token ${adminSecret}`],
      ...[`Bearer${adminSecret}`, `Bearer, ${adminSecret}`, `Bearer "${adminSecret}"`],
    ]) {
      expectRefusal(await ask({ authorization }), 401, 'invalid_admin_secret');
    }
  });

  test('the scheme may be in any case', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      expect((await ask({ authorization: `${scheme} ${adminSecret}` })).status).toBe(200);
    }
  });

  test('of two secrets both have to be right', async () => {
    const authorization = `Bearer ${adminSecret}`;

    expect((await ask({ authorization, 'x-admin-secret': adminSecret })).status).toBe(200);
    for (const headers of [
      { authorization, 'x-admin-secret': 'wrong' },
      { authorization, 'x-admin-secret': '' },
      { authorization: 'Bearer wrong', 'x-admin-secret': adminSecret },
    ]) {
      expectRefusal(await ask(headers), 401, 'invalid_admin_secret');
    }
  });

  test('an API key is no admin secret, and an admin secret no API key', async () => {
    const { key } = await newTenant(platform);

    expectRefusal(await ask({ 'x-api-key': key }), 401, 'authentication_required');
    expectRefusal(await ask({ authorization: `Bearer ${key}` }), 401, 'invalid_admin_secret');
    const bearer = { authorization: `Bearer ${adminSecret}` };
    expectRefusal(await agents(bearer), 401, 'authentication_required');
    expectRefusal(await agents({ 'x-api-key': adminSecret }), 401, 'invalid_api_key');
  });
});

describe('rule 5: a key lacking the scope needed gets 403 insufficient_scope', () => {
  const runs = async (scopes: string[], skill: string) => {
    const tenant = await newTenant(platform, { scopes });
    return tenant.post(`/api/${skill}`, skill === play ? acting() : {});
  };

  test('a scope names a category, and is compared exactly', async () => {
    for (const scope of ['stage', 'stagedx', 'staged-play', 'util', 'play', '0']) {
      const answer = await runs([scope], play);

      expectRefusal(answer, 403, 'insufficient_scope');
      expectRateLimitHeaders(answer);
    }
    expect((await runs(['staged'], play)).status).toBe(202);
    expect((await runs(['util', 'staged'], play)).status).toBe(202);
  });

  test("a skill's required_scopes list all that the key must hold", async () => {
    const vault = 'staged/v1.0/vault';

    expectRefusal(await runs(['staged'], vault), 403, 'insufficient_scope');
    expectRefusal(await runs(['vault'], vault), 403, 'insufficient_scope');
    expect((await runs(['vault', 'staged'], vault)).status).toBe(202);
  });

  test('* alone means all', async () => {
    expect((await runs(['*'], play)).status).toBe(202);
    expect((await runs(['*'], 'staged/v1.0/vault')).status).toBe(202);
  });

  test('a retry needs the scopes of the skill too', async () => {
    const owner = await newTenant(platform);
    const { body } = await owner.run(play, acting({ fail: { message: 'no', retryable: false } }));
    const other = await newTenant(platform, { organization_id: owner.organization, scopes: ['x'] });

    const answer = await other.post(`/api/jobs/${body.job_id}/retry`);

    expectRefusal(answer, 403, 'insufficient_scope');
    expect((await owner.get('/api/jobs')).body.total).toBe(1);
  });

  test('a skill that calls another needs its scopes from the key that started it', async () => {
    const { key } = await newTenant(platform, { scopes: ['staged'] });
    const input = acting({ call: ['util/v1.0/echo', { text: 'x' }] });

    const { body } = await platform.run(key, play, { ...input, output: 'called' });

    expect(body).toMatchObject({ status: 'failed', output: null });
    const all = await newTenant(platform);
    const called = await all.run(play, { ...input, output: 'called' });
    expect(called.body).toMatchObject({ status: 'completed', output: 'called' });
  });

  test('any valid key may use the registry, agents, jobs and conversations of its organization', async () => {
    const owner = await newTenant(platform);
    const { body: job } = await owner.run(play, acting());
    const other = await newTenant(platform, { organization_id: owner.organization, scopes: ['x'] });

    for (const path of [
      '/api/skills',
      '/api/skills/staged/v1.0/play',
      '/api/agents',
      '/api/agents/default',
      '/api/jobs',
      `/api/jobs/${job.job_id}`,
      '/api/conversations',
      `/api/conversations/${job.conversation_id}`,
      `/api/conversations/${job.conversation_id}/messages`,
      `/api/conversations/${job.conversation_id}/token-usage`,
    ]) {
      expect({ path, status: (await other.get(path)).status }).toEqual({ path, status: 200 });
    }
    const cancelled = await other.post(`/api/jobs/${job.job_id}/cancel`);
    expectRefusal(cancelled, 422, 'job_not_cancellable');
  });
});

describe('GET /health and GET /metrics need no credentials', () => {
  test.each(['/health', '/metrics'])('%s', async (path) => {
    expect((await platform.request('GET', path)).status).toBe(200);
    expect((await platform.request('GET', path, { key: 'wrong' })).status).toBe(200);
  });
});

describe('a header that may come once and comes twice is refused', () => {
  const execute = (headers: string, body = '{"text":"x"}') =>
    sendRaw(
      platform.url,
      `POST /api/util/v1.0/echo HTTP/1.1\r\nHost: x\r\ncontent-type: application/json\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`,
    );

  test('x-api-key, even when both are the same valid key', async () => {
    const { key } = await newTenant(platform);

    const answer = await execute(`x-api-key: ${key}\r\nX-Api-Key: ${key}\r\n`);

    expectRefusal(answer, 401, 'invalid_api_key');
  });

  test('authorization of the endpoint of the Model Context Protocol', async () => {
    const { key } = await newTenant(platform);
    const line = `authorization: Bearer ${key}\r\n`;
    const body = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

    const answer = await sendRaw(
      platform.url,
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\n${line}${line}content-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );

    expect(answer).toMatchObject({
      status: 401,
      body: { error: { data: { error: 'invalid_api_key' } } },
    });
  });

  test('authorization and x-admin-secret', async () => {
    for (const line of [`authorization: Bearer ${adminSecret}`, `x-admin-secret: ${adminSecret}`]) {
      const request = `GET /admin/api-keys HTTP/1.1\r\nHost: x\r\n${line}\r\n${line}\r\n\r\n`;

      expectRefusal(await sendRaw(platform.url, request), 401, 'invalid_admin_secret');
    }
  });

  test.each([
    ...['x-agent-id: default', 'idempotency-key: a', 'x-user-id: alice'],
    `x-conversation-id: ${newId()}`,
  ])('%s', async (line) => {
    const tenant = await newTenant(platform);

    const answer = await execute(`x-api-key: ${tenant.key}\r\n${line}\r\n${line}\r\n`);

    expectRefusal(answer, 400, 'validation_error');
    expect(answer.body.details[0].field).toBe(line.split(':')[0]);
    expect((await tenant.get('/api/jobs')).body.total).toBe(0);
  });
});

describe('the order of checks', () => {
  const malformed = '{"a":';

  test('credentials come before all else: 401', async () => {
    for (const [method, path] of [
      ['POST', '/api/no/such/route/at/all'],
      ['DELETE', '/api/jobs'],
      ['POST', '/api/unknown/v1.0/skill'],
      ['GET', '/api/agents/%zz'],
      ['GET', '/api/jobs?limit=0'],
      ['GET', `/api/agents/${'x'.repeat(2_000)}`],
    ] as const) {
      const body = method === 'POST' ? malformed : undefined;

      expectRefusal(await platform.request(method, path, { body }), 401, 'authentication_required');
      const withWrong = await platform.request(method, path, { body, key: 'x' });
      expectRefusal(withWrong, 401, 'invalid_api_key');
    }
    expectRefusal(await platform.request('GET', '/admin/x'), 401, 'authentication_required');
    expectRefusal(await platform.request('PUT', '/admin/api-keys'), 401, 'authentication_required');
  });

  test('then the rate limit: 429', async () => {
    const tenant = await newTenant(platform, { rate_limit: 1, scopes: ['x'] });
    expect((await tenant.get('/api/agents')).status).toBe(200);

    for (const [method, path] of [
      ['POST', '/api/no/such/route/at/all'],
      ['DELETE', '/api/jobs'],
      ['POST', '/api/unknown/v1.0/skill'],
      ['POST', `/api/${play}`],
      ['GET', `/api/jobs/${randomId}`],
      ['GET', '/api/agents/%zz'],
      ['GET', '/api/jobs?limit=0'],
    ] as const) {
      const body = method === 'POST' ? malformed : undefined;

      expectRefusal(await tenant.send(method, path, { body }), 429, 'rate_limit_exceeded');
    }
  });

  test('then route and resource: 404', async () => {
    const tenant = await newTenant(platform, { scopes: ['x'] });
    const text = { headers: { 'content-type': 'text/plain' }, body: malformed };
    const tooLarge = { body: ' '.repeat(1_048_577) };

    for (const options of [{ body: malformed }, text, tooLarge]) {
      for (const [method, path, code] of [
        ['POST', '/api/no/such/route/at/all', 'not_found'],
        ['POST', '/api/agents/x/y', 'not_found'],
        ['POST', '/api/unknown/v1.0/skill', 'skill_not_found'],
        ['POST', '/api/staged/v9.9/play', 'skill_not_found'],
        ['PUT', '/api/agents/unknown', 'not_found'],
        ['DELETE', '/api/agents/unknown', 'not_found'],
        ['POST', `/api/jobs/${randomId}/cancel`, 'not_found'],
        ['POST', `/api/jobs/${randomId}/retry`, 'not_found'],
      ] as const) {
        expectRefusal(await tenant.send(method, path, options), 404, code);
      }
    }
    for (const path of [
      `/api/jobs/${randomId}/events`,
      `/api/conversations/${randomId}/messages?limit=0`,
      `/api/conversations/${randomId}/messages?role=nobody`,
    ]) {
      const answer = await tenant.get(path, { 'last-event-id': 'nonsense' });
      expectRefusal(answer, 404, 'not_found');
    }
  });

  test('an unknown x-agent-id is 404 before a missing scope is 403', async () => {
    const { post } = await newTenant(platform, { scopes: ['x'] });

    const answer = await post(`/api/${play}`, malformed, { 'x-agent-id': 'unknown' });

    expectRefusal(answer, 404, 'not_found');
  });

  test('an unknown skill is 404 before anything is said of the headers', async () => {
    const { post } = await newTenant(platform);
    const headers = { 'x-agent-id': 'unknown', 'idempotency-key': '', 'x-user-id': '' };

    const answer = await post('/api/unknown/v1.0/skill', malformed, headers);

    expectRefusal(answer, 404, 'skill_not_found');
  });

  test('then the scope: 403', async () => {
    const { key, post } = await newTenant(platform, { scopes: ['x'] });

    for (const body of [malformed, '', 'null', ' '.repeat(1_048_577)]) {
      expectRefusal(await post(`/api/${play}`, body), 403, 'insufficient_scope');
    }
    const headers = { 'content-type': 'text/plain', 'idempotency-key': '' };
    const answer = await platform.request('POST', `/api/${play}`, { key, headers, body: 'x' });
    expectRefusal(answer, 403, 'insufficient_scope');
  });

  test('then the body, and last the state: 400 before 422', async () => {
    const tenant = await newTenant(platform);
    await tenant.put('/api/agents/default', { status: 'paused' });

    expectRefusal(await tenant.post(`/api/${play}`, malformed), 400, 'validation_error');
    expectInvalid(await tenant.post('/api/util/v1.0/echo', { text: 1 }), 'text');
    const text = { headers: { 'content-type': 'text/plain' }, body: 'x' };
    const answer = await tenant.send('POST', `/api/${play}`, text);
    expectRefusal(answer, 415, 'unsupported_media_type');
    expectRefusal(await tenant.post(`/api/${play}`, acting()), 422, 'agent_paused');
  });

  test('a key that is refused later has been counted: it was let in', async () => {
    const tenant = await newTenant(platform, { rate_limit: 10 });

    const first = await tenant.get('/api/nowhere');
    const second = await tenant.post(`/api/${play}`, malformed);

    expect(first.headers.get('x-ratelimit-remaining')).toBe('9');
    expect(second.headers.get('x-ratelimit-remaining')).toBe('8');
  });
});

describe.skipIf(!(await isInstalled('PostgreSQL')))('two processes on one database', () => {
  test('a key revoked at one is refused by the other within a second', async () => {
    const environment = { DATABASE_URL: await migratedDatabase() };
    const [one, other] = await Promise.all([
      startStaged({ environment }),
      startStaged({ environment }),
    ]);
    try {
      const { key, keyId } = await newTenant(one);
      expect((await other.request('GET', '/api/agents', { key })).status).toBe(200);

      await one.admin('DELETE', `/admin/api-keys/${keyId}`);

      const answer = await waitFor(
        async () => {
          const one = await other.request('GET', '/api/agents', { key });
          return one.status === 401 ? one : null;
        },
        // A second, and what the requests themselves take on a busy machine.
        { describe: 'the other process refuses the key', deadlineMs: 3_000 },
      );
      expectRefusal(answer, 401, 'invalid_api_key');
    } finally {
      await Promise.all([one.stop(), other.stop()]);
    }
  });
});
