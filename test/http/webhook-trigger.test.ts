import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  anId,
  expectInvalid,
  expectNoRateLimitHeaders,
  expectRateLimitHeaders,
  expectRefusal,
} from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import { recordEvents } from '../support/outbox.ts';
import type { Answer, Platform } from '../support/platform.ts';
import { sendRaw } from '../support/raw-http.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

interface Trigger {
  readonly tenant: Tenant;
  readonly id: string;
  readonly token: string;
  readonly path: string;
  /** Calls it, without a key. */
  call(body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** The input of the job that a call started. */
  inputOf(answer: Answer): Promise<unknown>;
}

/** A trigger of staged/v1.0/any in an organization of its own. */
async function newTrigger(
  fields: Record<string, unknown> = {},
  key: Record<string, unknown> = {},
): Promise<Trigger> {
  const tenant = await newTenant(platform, key);
  await recordEvents(platform.database, tenant.organization);
  const created = await tenant.post('/api/agent-triggers', {
    agent_id: 'default',
    name: 'Pushes',
    skill_category: 'staged',
    skill_name: 'any',
    ...fields,
  });
  if (created.status !== 201) throw new Error(`No trigger: ${created.text}`);
  const { id, token } = created.body;
  const path = `/api/webhooks/agent/${token}`;
  return {
    tenant,
    id,
    token,
    path,
    call: (body, headers = {}) =>
      platform.request('POST', path, { headers, ...(body === undefined ? {} : { body }) }),
    async inputOf(answer) {
      expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 202 });
      return (await tenant.get(`/api/jobs/${answer.body.job_id}`)).body.input;
    },
  };
}

async function errorsOf(tenant: Tenant) {
  const rows = await platform.database.read.kysely
    .selectFrom('events')
    .select(['agent_id', 'data'])
    .where('organization_id', '=', tenant.organization)
    .where('type', '=', 'agent.error')
    .orderBy('seq')
    .execute();
  return rows.map(({ agent_id, data }) => ({ agent_id, ...JSON.parse(data) }));
}

const jobsOf = async (tenant: Tenant) => (await tenant.get('/api/jobs')).body.total as number;
const hub = (secret: string, body: string) =>
  `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
const secret = 'a secret of enough characters';

/** The headers of Standard Webhooks. */
function standard(key: Buffer | string, body: string, { id = 'msg_1', at = clock.now() } = {}) {
  const timestamp = String(Math.floor(at / 1000));
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  };
}

describe('POST /api/webhooks/agent/:webhookToken', () => {
  test('answers 202 with job, conversation and status, and the job runs', async () => {
    const { call, tenant } = await newTrigger({ name: 'Pushes 🏔️' });

    const answer = await call({ a: 1 });

    expect({ status: answer.status, body: answer.body }).toEqual({
      status: 202,
      body: { job_id: anId, conversation_id: anId, status: 'queued' },
    });
    const { job_id, conversation_id } = answer.body;
    expect(answer.headers.get('location')).toBe(`/api/jobs/${job_id}`);
    expect(answer.headers.get('idempotent-replayed')).toBeNull();
    expectRateLimitHeaders(answer);
    expect((await tenant.jobIn(job_id, 'completed')).body).toMatchObject({
      agent_id: 'default',
      trigger_type: 'webhook',
      user_id: 'Pushes 🏔️',
      queue: 'skill-execution',
      max_attempts: 3,
      input: { a: 1 },
      output: { a: 1 },
    });
    const conversation = await tenant.get(`/api/conversations/${conversation_id}`);
    expect(conversation.body).toMatchObject({ trigger_type: 'webhook', status: 'completed' });
  });

  test('any unknown token is 404 not_found', async () => {
    const { token } = await newTrigger();
    const others = [
      'x',
      token.slice(0, -1),
      `${token}x`,
      token.toLowerCase() === token ? token.toUpperCase() : token.toLowerCase(),
      token.slice(4),
      `trg_${'A'.repeat(43)}`,
      '%20',
      "'",
      'x'.repeat(5_000),
    ];

    for (const other of others) {
      const answer = await platform.request('POST', `/api/webhooks/agent/${other}`, { body: {} });
      expectRefusal(answer, 404, 'not_found');
      expect(answer.body.message).toBe('Trigger not found');
      expectNoRateLimitHeaders(answer);
    }
  });

  test('no API key is needed, and one that is sent is ignored', async () => {
    const { call, tenant } = await newTrigger();
    const other = await newTenant(platform, { scopes: ['web'] });

    for (const key of [tenant.key, other.key, 'sk_wrong', '']) {
      expect((await call({}, { 'x-api-key': key })).status).toBe(202);
    }
    expect((await call({}, { authorization: 'Bearer x', 'x-agent-id': 'nobody' })).status).toBe(
      202,
    );
    expect(await jobsOf(tenant)).toBe(5);
    expect(await jobsOf(other)).toBe(0);
  });

  test.each(['GET', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])(
    '%s is 405 with Allow',
    async (method) => {
      const { path } = await newTrigger();

      for (const one of [path, '/api/webhooks/agent/unknown']) {
        const answer = await platform.request(method, one);
        expectRefusal(answer, 405, 'method_not_allowed');
        expect(answer.headers.get('allow')).toBe('POST');
      }
    },
  );

  test.each(['%00', '%zz', '%FF'])(
    'an unreadable token is 404, with any key: %s',
    async (token) => {
      for (const headers of [{}, { 'x-api-key': 'sk_wrong' }]) {
        const options = { body: {}, headers };
        const answer = await platform.request('POST', `/api/webhooks/agent/${token}`, options);
        expectRefusal(answer, 404, 'not_found');
        expect(answer.body.message).toBe('Trigger not found');
        expectNoRateLimitHeaders(answer);
      }
    },
  );

  test('a path below it or without a token is 404', async () => {
    const { path } = await newTrigger();

    for (const one of [`${path}/x`, `${path}/`, '/api/webhooks/agent/', '/api/webhooks/agent']) {
      expectRefusal(await platform.request('POST', one, { body: {} }), 404, 'not_found');
    }
  });

  test('an inactive trigger is 404 with the words of an unknown one, and works when active again', async () => {
    const { call, tenant, id } = await newTrigger();
    const unknown = await platform.request('POST', '/api/webhooks/agent/unknown', { body: {} });
    await call({});

    await tenant.put(`/api/agent-triggers/${id}`, { active: false });
    const answer = await call({});

    expectRefusal(answer, 404, 'not_found');
    expect(answer.text).toBe(unknown.text);
    expect([...answer.headers.keys()].sort()).toEqual([...unknown.headers.keys()].sort());
    await tenant.put(`/api/agent-triggers/${id}`, { active: true });
    expect((await call({})).status).toBe(202);
    expect(await errorsOf(tenant)).toEqual([]);
  });

  test('a deleted trigger is 404', async () => {
    const { call, tenant, id } = await newTrigger();
    await call({});

    await tenant.delete(`/api/agent-triggers/${id}`);

    expectRefusal(await call({}), 404, 'not_found');
    expect(await jobsOf(tenant)).toBe(1);
  });
});

describe('what is sent', () => {
  const forms: [string, string, unknown][] = [
    ['a=1&b=two+words&c=%F0%9F%8F%94', 'object of strings', { a: '1', b: 'two words', c: '🏔' }],
    ['a=1&b=2&a=3&a=4', 'repeated names become arrays', { a: ['1', '3', '4'], b: '2' }],
    ['a&=x&b==&&', 'odd pairs', { a: '', '': 'x', b: '=' }],
    ['payload=%7B%22ref%22%3A%22main%22%7D', 'JSON in payload is the body', { ref: 'main' }],
    ['payload=%5B1%5D', 'a list in payload', { event: [1] }],
    ['payload=%7Boops', 'payload that is no JSON stays a field', { payload: '{oops' }],
    ['payload=1&payload=2', 'payload twice is a field', { payload: ['1', '2'] }],
    ['payload=%7B%7D&x=1', 'payload beside others is a field', { payload: '{}', x: '1' }],
    ['constructor=x&toString=y', 'names of no meaning', { constructor: 'x', toString: 'y' }],
  ];
  test.each(forms)('a form %s: %s', async (body, _title, input) => {
    const { call, inputOf } = await newTrigger();

    const answer = await call(body, { 'content-type': 'application/x-www-form-urlencoded' });

    expect(await inputOf(answer)).toEqual(input);
  });

  test.each([
    ...['a=%FF', 'a=%00', 'a=%', 'a=%ED%A0%80', 'a=\0', '__proto__=x', '__prot%6f__=x'],
    ...['\ufeffa=x', 'a=\ufeffx', 'text=%EF%BB%BFx', '%EF%BB%BFa=x', 'payload=%EF%BB%BF%7B%7D'],
  ])('the form %j is 400', async (body) => {
    const { call } = await newTrigger();
    const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=UTF-8' };

    expectInvalid(await call(body, headers), 'body');
  });

  test('a text is the event', async () => {
    const { call, inputOf } = await newTrigger();

    const answer = await call('disk full\n🏔', { 'content-type': 'Text/Plain; charset=utf-8' });

    expect(await inputOf(answer)).toEqual({ event: 'disk full\n🏔' });
  });

  test('no body at all is {}', async () => {
    const { path, inputOf } = await newTrigger();

    const bare = await sendRaw(
      platform.url,
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n`,
    );
    const empty = await platform.request('POST', path, {
      body: '',
      headers: { 'content-type': 'application/json' },
    });

    expect(bare.status).toBe(202);
    expect(await inputOf(empty)).toEqual({});
  });

  test.each([
    ['[1,2]', [1, 2]],
    ['"x"', 'x'],
    ['1', 1],
    ['null', null],
    ['true', true],
  ])('JSON that is no object is the event: %s', async (body, event) => {
    const { call, inputOf } = await newTrigger();

    expect(await inputOf(await call(body))).toEqual({ event });
  });

  const broken: [string, string | Uint8Array][] = [
    ['malformed', '{'],
    ['two values', '{} {}'],
    ['a trailing comma', '{"a":1,}'],
    ['__proto__', '{"__proto__":{"x":1}}'],
    ['__proto__, escaped', '{"\\u005f_proto__":{"x":1}}'],
    ['constructor.prototype', '{"constructor":{"prototype":{"x":1}}}'],
    ['NUL', '{"a":"\\u0000"}'],
    ['half a surrogate pair', '{"a":"\\ud800"}'],
    ['infinity', '{"a":1e999}'],
    ['depth 65', `${'['.repeat(65)}${']'.repeat(65)}`],
    ['depth 100,000', '['.repeat(100_000)],
    ['no UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['a byte order mark', '\ufeff{}'],
  ];
  test.each(broken)('JSON that is %s is 400', async (_title, body) => {
    const { call, tenant } = await newTrigger();

    const answer = await call(body);

    expectInvalid(answer, 'body');
    expectRateLimitHeaders(answer);
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
    expect(await jobsOf(tenant)).toBe(0);
  });

  test('a text that is no UTF-8, has a NUL or begins with a byte order mark is 400', async () => {
    const { call } = await newTrigger();
    const headers = { 'content-type': 'text/plain' };

    expectInvalid(await call(Buffer.from([0xff, 0xfe]), headers), 'body');
    expectInvalid(await call('a\0b', headers), 'body');
    expectInvalid(await call('\ufeffa', headers), 'body');
  });

  test.each([
    'application/xml',
    'multipart/form-data; boundary=x',
    'application/octet-stream',
    'application/jsonp',
    'text/html',
    'application/json, text/plain',
    'nonsense',
    ';',
  ])('content-type %s is 415', async (type) => {
    const { call, tenant } = await newTrigger();

    const answer = await call('{"a":1}', { 'content-type': type });

    expectRefusal(answer, 415, 'unsupported_media_type');
    expect(answer.body.message).toContain('application/x-www-form-urlencoded or text/plain');
    expectRateLimitHeaders(answer);
    expect(await jobsOf(tenant)).toBe(0);
  });

  test('a body without a content-type, and an encoded one, is 415', async () => {
    const { call, path } = await newTrigger();

    const bare = await sendRaw(
      platform.url,
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}`,
    );

    expectRefusal(bare, 415, 'unsupported_media_type');
    const encoded = await call('{}', { 'content-encoding': 'gzip' });
    expectRefusal(encoded, 415, 'unsupported_media_type');
    expect((await call('{}', { 'content-encoding': 'identity' })).status).toBe(202);
  });

  test('1 MiB is taken, one byte more is 413, with and without a Content-Length', async () => {
    const { call, path, token } = await newTrigger();
    const most = 1024 * 1024;
    const body = (bytes: number) => JSON.stringify('x'.repeat(bytes - 2));

    expect((await call(body(most))).status).toBe(202);
    const answer = await call(body(most + 1));
    expectRefusal(answer, 413, 'payload_too_large');
    expectRateLimitHeaders(answer);
    const chunk = body(most + 1);
    const chunked = await sendRaw(
      platform.url,
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n` +
        `${chunk.length.toString(16)}\r\n${chunk}\r\n0\r\n\r\n`,
    );
    expectRefusal(chunked, 413, 'payload_too_large');
    expect(answer.text).not.toContain(token);
  });

  test('input that violates the schema is 400 with details, and no job is queued', async () => {
    const { call, tenant } = await newTrigger({ skill_name: 'order', input: { count: 11 } });

    expectInvalid(await call({ item: { name: 'tea' } }), 'count');
    expectInvalid(await call({ count: 1 }), 'item');
    expectInvalid(await call({ count: 1, item: { name: 'x' }, more: 1 }), 'more');
    expect(await jobsOf(tenant)).toBe(0);
    expect((await call({ count: 1, item: { name: 'x' } })).status).toBe(202);
  });

  test('the input of the trigger has default values for the fields of the body', async () => {
    const input = { a: { deep: 1 }, b: 'own', toString: 'x' };
    const { call, inputOf } = await newTrigger({ input });

    const answer = await call({ a: { other: 2 }, c: null });

    expect(await inputOf(answer)).toEqual({ ...input, a: { other: 2 }, c: null });
  });
});

describe('signatures', () => {
  test('without a signing_secret none is needed, and sent signatures are ignored', async () => {
    const { call } = await newTrigger();

    expect((await call({}, { 'x-hub-signature-256': 'sha256=00' })).status).toBe(202);
  });

  test('a push signed as GitHub signs is taken', async () => {
    const { call, inputOf } = await newTrigger({
      signing_secret: secret,
      mapping: '{"event": headers."x-github-event", "branch": body.ref}',
    });
    const body = '{ "ref": "refs/heads/main",\n "who": "Zoë \\u2713" }';

    const answer = await call(body, {
      'x-github-event': 'push',
      'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'x-hub-signature-256': hub(secret, body),
    });

    expect(await inputOf(answer)).toEqual({ event: 'push', branch: 'refs/heads/main' });
  });

  test('a form is signed over its bytes as well', async () => {
    const { call, inputOf } = await newTrigger({ signing_secret: secret });
    const body = 'payload=%7B%22ref%22%3A%22main%22%7D';

    const answer = await call(body, {
      'content-type': 'application/x-www-form-urlencoded',
      'x-hub-signature-256': hub(secret, body).replace('sha256=', 'sha256=').toLowerCase(),
    });

    expect(await inputOf(answer)).toEqual({ ref: 'main' });
  });

  test.each([
    [
      'its bytes behind whsec_',
      `whsec_${Buffer.alloc(24, 7).toString('base64')}`,
      Buffer.alloc(24, 7),
    ],
    ['the secret itself without that prefix', secret, secret],
  ])('a Standard Webhooks message is taken, keyed with %s', async (_title, signing_secret, key) => {
    const { call } = await newTrigger({ signing_secret });
    const body = '{"type":"invoice.paid"}';
    const headers = standard(key, body);
    const several = { ...headers, 'webhook-signature': `v1,AAAA ${headers['webhook-signature']}` };

    expect((await call(body, headers)).status).toBe(202);
    expect((await call(body, several)).status).toBe(202);
  });

  test('a missing or wrong signature is 401 invalid_signature, and no job is queued', async () => {
    const { call, tenant, path } = await newTrigger({ signing_secret: secret });
    const body = '{"a":1}';
    const good = hub(secret, body);
    const message = standard(secret, body);
    const wrong: Record<string, string>[] = [
      {},
      { 'x-hub-signature-256': '' },
      { 'x-hub-signature-256': 'sha256=' },
      { 'x-hub-signature-256': good.slice(7) },
      { 'x-hub-signature-256': good.replace('sha256', 'sha1') },
      { 'x-hub-signature-256': good.slice(0, -1) },
      { 'x-hub-signature-256': `${good}0` },
      { 'x-hub-signature-256': `${good}, ${good}` },
      { 'x-hub-signature-256': hub('another secret of that length', body) },
      { 'x-hub-signature-256': hub(secret, '{"a": 1}') },
      { 'x-hub-signature': good },
      { 'webhook-signature': message['webhook-signature'] },
      { ...message, 'webhook-id': 'msg_2' },
      { ...message, 'webhook-timestamp': String(Number(message['webhook-timestamp']) + 1) },
      { ...message, 'webhook-timestamp': '' },
      { ...message, 'webhook-timestamp': 'NaN' },
      { ...message, 'webhook-signature': '' },
      { ...message, 'webhook-signature': message['webhook-signature'].slice(3) },
      standard(secret, body, { at: clock.now() - 301 * second }),
      standard(secret, body, { at: clock.now() + 302 * second }),
      { ...message, 'x-hub-signature-256': hub('another secret of that length', body) },
      { ...standard('another secret of that length', body), 'x-hub-signature-256': good },
    ];

    for (const headers of wrong) {
      const answer = await call(body, headers);
      expectRefusal(answer, 401, 'invalid_signature');
      expectRateLimitHeaders(answer);
    }
    const twice = await sendRaw(
      platform.url,
      `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 7\r\n` +
        `x-hub-signature-256: ${good}\r\nx-hub-signature-256: ${good}\r\n\r\n${body}`,
    );
    expectRefusal(twice, 401, 'invalid_signature');
    expect(await jobsOf(tenant)).toBe(0);
  });

  test('both signatures may come together, when both are right', async () => {
    const { call } = await newTrigger({ signing_secret: secret });
    const body = '{"a":1}';
    const headers = { ...standard(secret, body), 'x-hub-signature-256': hub(secret, body) };

    expect((await call(body, headers)).status).toBe(202);
  });

  test('a signature five minutes old is still good, by the platform clock', async () => {
    const { call } = await newTrigger({ signing_secret: secret });
    const headers = standard(secret, '{}', { at: clock.now() - 299 * second });

    expect((await call('{}', headers)).status).toBe(202);
  });

  test('an empty body is signed too', async () => {
    const { call, path } = await newTrigger({ signing_secret: secret });

    expectRefusal(await platform.request('POST', path), 401, 'invalid_signature');
    expect((await call('', { 'x-hub-signature-256': hub(secret, '') })).status).toBe(202);
  });

  test('a new secret counts at once, and null takes it away', async () => {
    const { call, tenant, id } = await newTrigger({ signing_secret: secret });
    const next = 'the next secret, as long';
    const signed = (by: string) => call('{}', { 'x-hub-signature-256': hub(by, '{}') });

    await tenant.put(`/api/agent-triggers/${id}`, { signing_secret: next });
    expectRefusal(await signed(secret), 401, 'invalid_signature');
    expect((await signed(next)).status).toBe(202);
    await tenant.put(`/api/agent-triggers/${id}`, { signing_secret: null });
    expect((await call({})).status).toBe(202);
  });
});

describe('the limit of a trigger', () => {
  const header = (answer: Answer, name: string) =>
    Number(answer.headers.get(`x-ratelimit-${name}`));

  test('is 60 calls per minute by default, counted by the trigger', async () => {
    const { call, tenant } = await newTrigger();
    for (let i = 0; i < 60; i++) {
      const answer = await call({});
      expect([answer.status, header(answer, 'limit'), header(answer, 'remaining')]).toEqual([
        ...[202, 60, 59 - i],
      ]);
    }

    const refused = await call({});

    expectRefusal(refused, 429, 'rate_limit_exceeded');
    expect(refused.body.message).toContain('60');
    expect(refused.body.message).toMatch(/trigger/);
    expect(header(refused, 'remaining')).toBe(0);
    expect(refused.headers.get('retry-after')).toBe(String(refused.body.retry_after));
    expect(await jobsOf(tenant)).toBe(60);
  });

  test('of 50 calls at once at limit 10 exactly 10 are accepted; after retry_after one more is', async () => {
    const { call } = await newTrigger({ rate_limit: 10 });

    const answers = await Promise.all(Array.from({ length: 50 }, () => call({})));

    expect(answers.filter(({ status }) => status === 202)).toHaveLength(10);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(40);
    clock.advance(refused[0]?.body.retry_after * second);
    expect((await call({})).status).toBe(202);
  });

  test('is independent of keys and of other triggers', async () => {
    const { call, tenant } = await newTrigger({ rate_limit: 1 }, { rate_limit: 4 });
    const other = await newTrigger({ rate_limit: 1 });

    expect((await call({})).status).toBe(202);
    expect((await call({}, { 'x-api-key': tenant.key })).status).toBe(429);
    expect((await call({}, { 'x-api-key': other.tenant.key })).status).toBe(429);
    expect((await other.call({})).status).toBe(202);
    // The creation was the first of four.
    for (let i = 0; i < 3; i++) expect((await tenant.get('/api/agents')).status).toBe(200);
    expect((await tenant.get('/api/agents')).status).toBe(429);
  });

  test('counts calls that later checks refuse, such as unsigned calls and invalid bodies', async () => {
    const { call } = await newTrigger({ rate_limit: 3, signing_secret: secret });

    const statuses = [
      await call({}),
      await call('{', { 'x-hub-signature-256': hub(secret, '{') }),
      await call('<a/>', {
        'content-type': 'text/xml',
        'x-hub-signature-256': hub(secret, '<a/>'),
      }),
      await call('{}', { 'x-hub-signature-256': hub(secret, '{}') }),
    ].map(({ status }) => status);

    expect(statuses).toEqual([401, 400, 415, 429]);
  });

  test('that is changed counts at once', async () => {
    const { call, tenant, id } = await newTrigger({ rate_limit: 1 });
    await call({});

    await tenant.put(`/api/agent-triggers/${id}`, { rate_limit: 3 });

    const statuses = [await call({}), await call({}), await call({})].map(({ status }) => status);
    expect(statuses).toEqual([202, 202, 429]);
  });
});

describe('repeats', () => {
  test.each(['idempotency-key', 'x-github-delivery', 'webhook-id'])(
    '50 at once with the same %s are one job',
    async (name) => {
      const { call, tenant } = await newTrigger();

      const answers = await Promise.all(
        Array.from({ length: 50 }, () => call({ a: 1 }, { [name]: 'one' })),
      );

      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      const replayed = answers.filter(
        ({ headers }) => headers.get('idempotent-replayed') === 'true',
      );
      expect(replayed).toHaveLength(49);
      expect(await jobsOf(tenant)).toBe(1);
    },
  );

  test('a body sent again without any of them is a second run', async () => {
    const { call, tenant } = await newTrigger();

    await call({ a: 1 });
    await call({ a: 1 });

    expect(await jobsOf(tenant)).toBe(2);
  });

  test('the Idempotency-Key goes before the names that senders give', async () => {
    const { call, tenant } = await newTrigger();
    const send = (key: string, delivery: string) =>
      call({}, { 'idempotency-key': key, 'x-github-delivery': delivery });

    await send('one', 'a');
    await send('one', 'b');
    await send('two', 'a');

    expect(await jobsOf(tenant)).toBe(2);
  });

  test('the webhook-id that is signed goes before all that is not', async () => {
    const { call, tenant } = await newTrigger({ signing_secret: secret });
    const message = standard(secret, '{}');
    const first = await call('{}', { ...message, 'idempotency-key': 'mine' });

    for (const name of ['idempotency-key', 'x-github-delivery']) {
      const again = await call('{}', { ...message, [name]: 'of an attacker' });
      expect(again.text).toBe(first.text);
      expect(again.headers.get('idempotent-replayed')).toBe('true');
    }
    expect(await jobsOf(tenant)).toBe(1);
    expect((await call('{}', standard(secret, '{}', { id: 'msg_2' }))).status).toBe(202);
    expect(await jobsOf(tenant)).toBe(2);
  });

  test('a webhook-id that is not signed goes after them', async () => {
    const { call, tenant } = await newTrigger({ signing_secret: secret });
    const signed = { 'x-hub-signature-256': hub(secret, '{}'), 'webhook-id': 'msg_1' };

    await call('{}', { ...signed, 'idempotency-key': 'one' });
    await call('{}', { ...signed, 'idempotency-key': 'two' });

    expect(await jobsOf(tenant)).toBe(2);
  });

  test.each([
    ['spaces', '{"a": [1.0, {"b":2}], "c":"é"}', '{"a":[1,{"b":2}],"c":"é"}'],
    ['the order of fields', '{"a":1,"b":{"c":2,"d":3}}', '{"b":{"d":3,"c":2},"a":1}'],
    ['escapes', '{"a":"é"}', '{"a":"\\u00e9"}'],
  ])('a body that differs in %s alone is the same body', async (_title, body, same) => {
    const { call } = await newTrigger();
    const headers = { 'idempotency-key': 'one' };
    const first = await call(body, headers);

    const again = await call(same, headers);

    expect({ status: again.status, text: again.text }).toEqual({ status: 202, text: first.text });
  });

  test('another query or skill under the same key is 422 idempotency_key_reused', async () => {
    const trigger = await newTrigger({ mapping: '{"text": query.t}' });
    const { tenant, id, path, inputOf } = trigger;
    const send = (query: string) =>
      platform.request('POST', `${path}?${query}`, { headers: { 'idempotency-key': 'one' } });
    const first = await send('t=one&u=1');
    expect(await inputOf(first)).toEqual({ text: 'one' });

    expectRefusal(await send('t=two&u=1'), 422, 'idempotency_key_reused');
    expect((await send('u=1&t=%6fne')).text).toBe(first.text);
    const other = { skill_name: 'versions', skill_version: 'v2.0' };
    await tenant.put(`/api/agent-triggers/${id}`, other);
    expectRefusal(await send('t=one&u=1'), 422, 'idempotency_key_reused');
    const own = { skill_name: 'any', skill_version: 'v1.0' };
    await tenant.put(`/api/agent-triggers/${id}`, own);
    expect((await send('t=one&u=1')).text).toBe(first.text);
    expect(await jobsOf(tenant)).toBe(1);
  });

  test('a call with other headers is still a repeat', async () => {
    const { call } = await newTrigger({ mapping: '{"at": headers."x-sent-at"}' });
    const first = await call({}, { 'idempotency-key': 'one', 'x-sent-at': '1' });

    const again = await call({}, { 'idempotency-key': 'one', 'x-sent-at': '2' });

    expect(again.text).toBe(first.text);
  });

  test('a repeat gets the response of the first call, after any change of the trigger', async () => {
    const { call, tenant, id } = await newTrigger({ mapping: '{"a": body.a}' });
    const first = await call({ a: 1 }, { 'idempotency-key': 'one' });

    for (const change of [
      { mapping: '$error("no")' },
      { mapping: '1', input: { own: true } },
      { mapping: null, name: 'Other' },
    ]) {
      await tenant.put(`/api/agent-triggers/${id}`, change);
      const again = await call({ a: 1 }, { 'idempotency-key': 'one' });
      expect({ status: again.status, text: again.text }).toEqual({ status: 202, text: first.text });
      expect(again.headers.get('idempotent-replayed')).toBe('true');
    }
    expect(await jobsOf(tenant)).toBe(1);
  });

  test('another body under the same key is 422 idempotency_key_reused', async () => {
    const { call, tenant } = await newTrigger();
    const headers = { 'x-github-delivery': 'one' };
    await call({ a: 1 }, headers);

    expectRefusal(await call({ a: 2 }, headers), 422, 'idempotency_key_reused');
    expectRefusal(await call(undefined, headers), 422, 'idempotency_key_reused');
    expect(await jobsOf(tenant)).toBe(1);
  });

  test('a mapping may use the time, and a repeat is one still', async () => {
    const { call, tenant } = await newTrigger({ mapping: '{"at": $millis(), "r": $random()}' });

    const first = await call({ a: 1 }, { 'idempotency-key': 'one' });
    const again = await call({ a: 1 }, { 'idempotency-key': 'one' });

    expect(again.text).toBe(first.text);
    expect(await jobsOf(tenant)).toBe(1);
  });

  test('after 24 hours the key is forgotten; a refused call is not remembered', async () => {
    const { call, tenant } = await newTrigger({ rate_limit: 100 });
    const headers = { 'idempotency-key': 'one' };
    expectInvalid(await call('{', headers), 'body');
    await call({ a: 1 }, headers);
    clock.advance(24 * hour - second);
    await call({ a: 1 }, headers);
    expect(await jobsOf(tenant)).toBe(1);

    clock.advance(2 * second);
    await call({ a: 1 }, headers);

    expect(await jobsOf(tenant)).toBe(2);
  });

  test('two triggers may see the same key', async () => {
    const first = await newTrigger();
    const other = await newTrigger();

    const answers = [first, other].map(({ call }) => call({}, { 'idempotency-key': 'one' }));

    const ids = (await Promise.all(answers)).map(({ body }) => body.job_id);
    expect(new Set(ids).size).toBe(2);
  });

  test.each(['idempotency-key', 'x-github-delivery', 'webhook-id'])(
    'an empty, long or repeated %s is 400',
    async (name) => {
      const { call, path } = await newTrigger();

      expectInvalid(await call({}, { [name]: '' }), name);
      expectInvalid(await call({}, { [name]: 'x'.repeat(256) }), name);
      expect((await call({}, { [name]: 'x'.repeat(255) })).status).toBe(202);
      const twice = await sendRaw(
        platform.url,
        `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n${name}: a\r\n${name}: a\r\n\r\n`,
      );
      expectRefusal(twice, 400, 'validation_error');
    },
  );

  test('a repeat of a call from before a pause gets its response', async () => {
    const { call, tenant } = await newTrigger();
    const first = await call({}, { 'idempotency-key': 'one' });
    await tenant.put('/api/agents/default', { status: 'paused' });

    expect((await call({}, { 'idempotency-key': 'one' })).text).toBe(first.text);
    expectRefusal(await call({}, { 'idempotency-key': 'two' }), 422, 'agent_paused');
  });
});

describe('the key of a trigger', () => {
  test('a paused agent is 422 agent_paused, and works again when resumed', async () => {
    const { call, tenant } = await newTrigger();
    await tenant.put('/api/agents/default', { status: 'paused' });

    const answer = await call({});

    expectRefusal(answer, 422, 'agent_paused');
    expectRateLimitHeaders(answer);
    await tenant.put('/api/agents/default', { status: 'active' });
    expect((await call({})).status).toBe(202);
  });

  test("a revoked maker's key is 404 not_found, told as agent.error at most once a minute", async () => {
    const { call, tenant, id } = await newTrigger();
    await call({});
    await platform.admin('DELETE', `/admin/api-keys/${tenant.keyId}`);

    const answers = await Promise.all(Array.from({ length: 20 }, () => call({})));

    for (const answer of answers) {
      expectRefusal(answer, 404, 'not_found');
      expect(answer.body.message).toBe('Trigger not found');
    }
    const told = {
      agent_id: 'default',
      code: 'invalid_api_key',
      message: `The trigger ${id} did not run: its key is revoked or expired.`,
      job_id: null,
    };
    expect(await errorsOf(tenant)).toEqual([told]);
    clock.advance(minute);
    await call({});
    expect(await errorsOf(tenant)).toEqual([told, told]);
  });

  test("an expired maker's key is 404 not_found, with agent.error", async () => {
    const expires_at = new Date(clock.now() + minute).toISOString();
    const { call, tenant } = await newTrigger({}, { expires_at });
    expect((await call({})).status).toBe(202);

    clock.advance(minute);

    expectRefusal(await call({}), 404, 'not_found');
    expect(await errorsOf(tenant)).toMatchObject([{ code: 'invalid_api_key' }]);
  });

  test('an inactive skill is 404 skill_not_found, with agent.error', async () => {
    const { call, tenant } = await newTrigger({ skill_name: 'shout', skill_version: 'v1.0' });
    await platform.admin('POST', '/admin/skills/staged/v1.0/shout/deprecate');

    const answers = [await call({}), await call({})];
    await platform.admin('POST', '/admin/skills/staged/v1.0/shout/activate');

    for (const answer of answers) expectRefusal(answer, 404, 'skill_not_found');
    expect(await errorsOf(tenant)).toMatchObject([{ code: 'skill_not_found', job_id: null }]);
  });

  test("a scope that the maker's key has not is 404 not_found, with agent.error", async () => {
    const { call, tenant } = await newTrigger({}, { scopes: ['staged'] });
    // As when a skill requires more after a restart.
    await platform.database.write((tx) =>
      tx.kysely
        .updateTable('api_keys')
        .set({ scopes: '["other"]' })
        .where('id', '=', tenant.keyId)
        .execute(),
    );

    const answer = await call({});

    expectRefusal(answer, 404, 'not_found');
    expect(await errorsOf(tenant)).toMatchObject([{ code: 'insufficient_scope' }]);
    expect(await jobsOf(tenant)).toBe(0);
  });

  test('another error within the minute sends an event too', async () => {
    const { call, tenant } = await newTrigger({ skill_name: 'shout' });
    await platform.admin('POST', '/admin/skills/staged/v1.0/shout/deprecate');
    await call({});
    await platform.admin('POST', '/admin/skills/staged/v1.0/shout/activate');

    await platform.admin('DELETE', `/admin/api-keys/${tenant.keyId}`);
    await call({});
    await call({});

    expect(await errorsOf(tenant)).toMatchObject([
      { code: 'skill_not_found' },
      { code: 'invalid_api_key' },
    ]);
  });
});

describe('the order of checks', () => {
  test('token, limit, maker, size, signature, skill, body, state', async () => {
    const trigger = await newTrigger({ rate_limit: 9, signing_secret: secret });
    const { call, tenant, id, path } = trigger;
    const big = `"${'x'.repeat(1024 * 1024)}"`;
    const signed = (body: string) => ({ 'x-hub-signature-256': hub(secret, body) });

    expectRefusal(await platform.request('POST', `${path}x`, { body: big }), 404, 'not_found');
    expectRefusal(await call(big), 413, 'payload_too_large');
    expectRefusal(await call('{', { 'content-type': 'a/b' }), 401, 'invalid_signature');
    await tenant.put('/api/agents/default', { status: 'paused' });
    const xml = await call('{', { ...signed('{'), 'content-type': 'a/b' });
    expectRefusal(xml, 415, 'unsupported_media_type');
    expectRefusal(await call('{', signed('{')), 400, 'validation_error');
    expectRefusal(await call('{}', signed('{}')), 422, 'agent_paused');
    await tenant.put(`/api/agent-triggers/${id}`, { skill_name: 'order' });
    expectRefusal(await call('{}', signed('{}')), 400, 'validation_error');
    await platform.admin('POST', '/admin/skills/staged/v1.0/order/deprecate');
    expectRefusal(await call('{', signed('{')), 404, 'skill_not_found');
    expectRefusal(await call('{'), 401, 'invalid_signature');
    await platform.admin('POST', '/admin/skills/staged/v1.0/order/activate');
    await platform.admin('DELETE', `/admin/api-keys/${tenant.keyId}`);
    const revoked = await call(big);
    expectRefusal(revoked, 404, 'not_found');
    expect(revoked.headers.get('x-ratelimit-remaining')).toBe('0');
    expectRefusal(await call(big), 429, 'rate_limit_exceeded');
  });
});
