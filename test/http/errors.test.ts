import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { errorStatuses } from '../../src/kernel/errors.ts';
import { serviceUnavailable } from '../support/broken-database.ts';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import { type Answer, adminSecret, type Platform } from '../support/platform.ts';
import { openRaw } from '../support/raw-http.ts';
import { acting, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());
// Whatever was sent, the server stays up.
afterEach(async () => {
  expect((await platform.request('GET', '/health')).body.status).toBe('ok');
});

const any = '/api/staged/v1.0/any';
const mebibyte = 1_048_576;

/** The three kinds of endpoints that take JSON: ours with a key, ours with the secret, a skill. */
const endpoints: [
  string,
  (tenant: Tenant, options: { body: unknown; headers?: object }) => Promise<Answer>,
][] = [
  ['POST /api/agents', (tenant, options) => tenant.send('POST', '/api/agents', options as never)],
  ['POST a skill', (tenant, options) => tenant.send('POST', any, options as never)],
  [
    'POST /admin/api-keys',
    (_, { body, headers = {} }) =>
      platform.request('POST', '/admin/api-keys', {
        body,
        headers: { authorization: `Bearer ${adminSecret}`, ...headers },
      }),
  ],
];

describe('every error has its code, its status and a message, without internals', () => {
  const refusals: Partial<Record<keyof typeof errorStatuses, () => Promise<Answer>>> = {
    validation_error: async () => (await newTenant(platform)).get('/api/jobs?limit=0'),
    authentication_required: () => platform.request('GET', '/api/jobs'),
    invalid_api_key: () => platform.request('GET', '/api/jobs', { key: 'x' }),
    async api_key_expired() {
      const expires_at = new Date(clock.now() + 1).toISOString();
      const tenant = await newTenant(platform, { expires_at });
      clock.advance(1);
      return tenant.get('/api/jobs');
    },
    invalid_admin_secret: () =>
      platform.request('GET', '/admin/api-keys', { headers: { 'x-admin-secret': 'x' } }),
    insufficient_scope: async () =>
      (await newTenant(platform, { scopes: ['x'] })).post(`/api/${play}`, {}),
    not_found: async () => (await newTenant(platform)).get('/api/agents/nobody'),
    skill_not_found: async () => (await newTenant(platform)).post('/api/no/v1.0/skill', {}),
    method_not_allowed: async () => (await newTenant(platform)).delete('/api/jobs'),
    conflict: async () => (await newTenant(platform)).post('/api/agents', { id: 'default' }),
    payload_too_large: async () =>
      (await newTenant(platform)).post('/api/agents', ' '.repeat(mebibyte + 1)),
    unsupported_media_type: async () =>
      (await newTenant(platform)).post('/api/agents', '{}', { 'content-type': 'text/plain' }),
    async agent_paused() {
      const tenant = await newTenant(platform);
      await tenant.put('/api/agents/default', { status: 'paused' });
      return tenant.post(`/api/${play}`, acting());
    },
    async idempotency_key_reused() {
      const tenant = await newTenant(platform);
      await tenant.post(any, '1', { 'idempotency-key': 'a' });
      return tenant.post(any, '2', { 'idempotency-key': 'a' });
    },
    async job_not_cancellable() {
      const tenant = await newTenant(platform);
      const { body } = await tenant.run(play, acting());
      return tenant.post(`/api/jobs/${body.job_id}/cancel`);
    },
    async job_not_retryable() {
      const tenant = await newTenant(platform);
      const { body } = await tenant.run(play, acting());
      return tenant.post(`/api/jobs/${body.job_id}/retry`);
    },
    async rate_limit_exceeded() {
      const tenant = await newTenant(platform, { rate_limit: 1 });
      await tenant.get('/api/jobs');
      return tenant.get('/api/jobs');
    },
  };

  test.each(Object.entries(refusals))('%s', async (code, refuse) => {
    const answer = await refuse();

    expectRefusal(answer, errorStatuses[code as keyof typeof errorStatuses], code);
    expect(answer.headers.get('allow')).toBe(code === 'method_not_allowed' ? 'GET, HEAD' : null);
    expect(answer.headers.get('retry-after') === null).toBe(code !== 'rate_limit_exceeded');
  });

  test('validation_error carries details of field and issue', async () => {
    const tenant = await newTenant(platform);

    const { body } = await tenant.post('/api/agents', { name: '' });

    expect(body.details).toEqual([{ field: 'name', issue: expect.stringMatching(/\S/) }]);
  });

  test('internal_error does not reveal its cause', async () => {
    const broken = await startStaged();
    const { key } = await newTenant(broken);
    const kysely = broken.database.read.kysely;
    const boom = () => {
      throw new Error('select * from secrets at /src/x.ts:1:1');
    };
    kysely.selectFrom = boom as never;

    const answer = await broken.request('GET', '/api/agents', { key });

    await broken.stop();
    expectRefusal(answer, 500, 'internal_error');
    expect(answer.text).not.toContain('secrets');
  });
});

describe('every response carries x-request-id', () => {
  test('a new one each time', async () => {
    const ids = new Set<string | null>();
    for (const path of [
      '/health',
      '/metrics',
      '/api/jobs',
      '/admin/api-keys',
      '/',
      '/docs',
      '/%zz',
    ]) {
      ids.add((await platform.request('GET', path)).headers.get('x-request-id'));
    }

    expect(ids.size).toBe(7);
    expect(ids.has(null)).toBe(false);
  });

  test("or the client's own, when it is usable", async () => {
    const idOf = async (given: string) => {
      const answer = await platform.request('GET', '/health', {
        headers: { 'x-request-id': given },
      });
      return answer.headers.get('x-request-id');
    };

    for (const id of ['a', 'req-1', '0198c0de-0000-7000-8000-000000000000', 'A.b:c_1']) {
      expect(await idOf(id)).toBe(id);
    }
    for (const id of ['', ' ', 'a b', 'é', '<script>', 'x'.repeat(1_000), 'a\tb', '{"a":1}']) {
      expect(await idOf(id)).toMatch(/^[0-9a-f-]{36}$/);
    }
  });
});

describe.each(endpoints)('a body sent to %s', (_name, send) => {
  const refused = async (body: unknown, headers: object = {}) => {
    const tenant = await newTenant(platform);
    return send(tenant, { body, headers });
  };

  test.each([
    [
      '{',
      '{"a":1',
      '{"a":1}}',
      '{a:1}',
      "{'a':1}",
      '{"a":01}',
      '{"a":+1}',
      '{"a":.5}',
      '{"a":NaN}',
    ],
    ['[1,]', '{"a":1,}', '// x\n{}', '/**/{}', 'undefined', 'tru', '"x', '"\n"', '{"a":"\t"}', ' '],
    ['{"a":1e400}', '{"a":-1e400}', '[1e999]', `[1${'0'.repeat(400)}]`],
    ['\0', '{"a":"\0"}', '{}\0', '{"\\u0000":1}', '{"a":"\\u0000"}', '{"a":["x\\u0000y"]}'],
    ['{"a":"\\ud83d"}', '{"a":"\\udc00\\ud800"}', '{"\\ud83d":1}', '{"a":"\\uD83Dx"}'],
    ['['.repeat(100_000), '{"a":'.repeat(100_000), '['.repeat(500_000) + ']'.repeat(500_000)],
    [`${'['.repeat(65)}${']'.repeat(65)}`, `${'{"a":'.repeat(65)}1${'}'.repeat(65)}`],
    ['{"__proto__":{"x":1}}', '{"\\u005f_proto__":{"x":1}}', '{"a":{"__proto__":null}}'],
    ['{"constructor":{"prototype":{"x":1}}}', '{"a":{"constructor":{"prototype":{"x":1}}}}'],
  ])('that is malformed or cannot be kept is 400 validation_error: %.30j …', async (...bodies) => {
    for (const body of bodies) expectRefusal(await refused(body), 400, 'validation_error');
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  test.each(['{"__proto__":{"x":1}}', '{"constructor":{"prototype":{"x":1}}}'])(
    'that is valid JSON with a key that is refused names it: %s',
    async (body) => {
      const { details } = (await refused(body)).body;

      expect(details).toEqual([{ field: 'body', issue: 'has __proto__ or constructor.prototype' }]);
    },
  );

  test('that is compressed is 415, and says so', async () => {
    const answer = await refused(gzipSync('{}'), { 'content-encoding': 'gzip' });

    expectRefusal(answer, 415, 'unsupported_media_type');
    expect(answer.body.message).toBe('Send the body without content-encoding');
  });

  test.each([
    ['a lone continuation byte', [0x22, 0x80, 0x22]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['an overlong NUL', [0x22, 0xc0, 0x80, 0x22]],
    ['an encoded surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a code point above U+10FFFF', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
    ['a cut sequence', [0x22, 0xf0, 0x9f, 0x98, 0x22]],
    ['Latin-1', [0x22, 0xe9, 0x22]],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
    ['a byte order mark', [0xef, 0xbb, 0xbf, 0x7b, 0x7d]],
  ])('that is not clean UTF-8 is 400 validation_error: %s', async (_what, bytes) => {
    expectRefusal(await refused(new Uint8Array(bytes)), 400, 'validation_error');
  });

  test.each([
    ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', ''],
    ...['application/jsonx', 'application/json,text/plain', 'text/plain,application/json', 'json'],
    ...['application/ld+json', 'application/json text', 'text/plain; a=application/json', '*/*'],
  ])('of the content type %j is 415 unsupported_media_type', async (type) => {
    const answer = await refused('{"name":1}', { 'content-type': type });

    expectRefusal(answer, 415, 'unsupported_media_type');
  });

  test('is checked with any spelling of application/json', async () => {
    for (const type of [
      ...[
        'application/json',
        'application/json;',
        'application/json; charset=utf-8',
        'APPLICATION/JSON',
      ],
      ...['application/json\t;', 'application/json ; a="b"', 'application/json;charset="utf-8'],
    ]) {
      const answer = await refused('{"a":"\\u0000"}', { 'content-type': type });

      expectRefusal(answer, 400, 'validation_error');
    }
  });
});

describe('values at the limit are accepted', () => {
  test('64 levels, 1 MiB, numbers as large as a double', async () => {
    const tenant = await newTenant(platform);
    const nested = `${'['.repeat(64)}${']'.repeat(64)}`;
    const large = JSON.stringify('x'.repeat(mebibyte - 2));

    for (const body of [nested, large, '1.7976931348623157e308', '-5e-324', '[1e308]']) {
      const answer = await tenant.run('staged/v1.0/any', body);

      expect(answer.status).toBe(200);
      expect(answer.body).toMatchObject({ status: 'completed', output: JSON.parse(body) });
    }
  });

  test('keys that only look dangerous', async () => {
    const tenant = await newTenant(platform);
    const metadata = {
      constructor: 1,
      prototype: { a: 1 },
      toString: 'x',
      hasOwnProperty: null,
      proto: '__proto__',
      '': '',
      $ref: '#/x',
    };

    const { status } = await tenant.post('/api/agents', { id: 'odd', metadata });

    expect(status).toBe(201);
    expect((await tenant.get('/api/agents/odd')).body.metadata).toEqual(metadata);
    expect((await tenant.run('staged/v1.0/any', metadata)).body.output).toEqual(metadata);
  });

  test('names of a prototype in a query or a path are inert', async () => {
    const tenant = await newTenant(platform);

    for (const query of [
      '__proto__=1',
      '__proto__[x]=1',
      'constructor.prototype.x=1',
      'toString=1',
    ]) {
      expectInvalid(await tenant.get(`/api/jobs?${query}`), query.split('=')[0] as string);
    }
    expectRefusal(await tenant.get('/api/agents/__proto__'), 404, 'not_found');
    expect(({} as { x?: number }).x).toBeUndefined();
  });
});

describe('a body over 1 MiB is 413 payload_too_large', () => {
  const head = (key: string, framing: string) =>
    `POST ${any} HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\n${framing}\r\n\r\n`;

  test('by Content-Length, before it is sent', async () => {
    const { key } = await newTenant(platform);
    const connection = openRaw(platform.url);

    connection.send(head(key, `content-length: ${mebibyte + 1}`));

    const [answer] = await connection.answers(1);
    expectRefusal(answer!, 413, 'payload_too_large');
    connection.destroy();
  });

  test.each([
    ['with a Content-Length', 'content-length: 5242880', (body: string) => body],
    ['chunked', 'transfer-encoding: chunked', (body: string) => `500000\r\n${body}\r\n0\r\n\r\n`],
  ])('also for a client that sends 5 MiB before it reads, %s', async (_, framing, framed) => {
    const { key } = await newTenant(platform);
    const connection = openRaw(platform.url);

    connection.send(head(key, framing));
    connection.send(framed(' '.repeat(5 * mebibyte)));
    connection.send(`GET /health HTTP/1.1\r\nHost: x\r\n\r\n`);

    const [answer, next] = await connection.answers(2);
    expectRefusal(answer!, 413, 'payload_too_large');
    expect(next?.status).toBe(200);
    connection.destroy();
  });

  test('by Content-Length, when it is sent', async () => {
    const { key } = await newTenant(platform);
    const connection = openRaw(platform.url);

    connection.send(head(key, `content-length: ${mebibyte + 1}`));
    connection.send(`"${'x'.repeat(mebibyte - 1)}"`);

    const [answer] = await connection.answers(1);
    expectRefusal(answer!, 413, 'payload_too_large');
    connection.destroy();
  });

  test('chunked, one byte over', async () => {
    const { key } = await newTenant(platform);
    const connection = openRaw(platform.url);

    connection.send(head(key, 'transfer-encoding: chunked'));
    for (let i = 0; i < 16; i++) connection.send(`10000\r\n${' '.repeat(0x10000)}\r\n`);
    connection.send('1\r\n \r\n');

    const [answer] = await connection.answers(1);
    expectRefusal(answer!, 413, 'payload_too_large');
    connection.destroy();
  });

  test('chunked, without end', async () => {
    const { key } = await newTenant(platform);
    const connection = openRaw(platform.url);
    const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`;

    connection.send(head(key, 'transfer-encoding: chunked'));
    for (let i = 0; i < 64; i++) connection.send(chunk);

    const [answer] = await connection.answers(1);
    expectRefusal(answer!, 413, 'payload_too_large');
    connection.destroy();
  });

  test('one that is exactly 1 MiB is not', async () => {
    const tenant = await newTenant(platform);
    const body = JSON.stringify('x'.repeat(mebibyte - 2));
    expect(body).toHaveLength(mebibyte);

    expect((await tenant.post(any, body)).status).toBe(202);
    expectRefusal(await tenant.post(any, `${body} `), 413, 'payload_too_large');
  });
});

describe('a wrong method or route', () => {
  test('an unknown route is 404 not_found', async () => {
    const tenant = await newTenant(platform);

    for (const path of [
      ...['/', '/healthz', '/health/', '/Health', '/metrics/x', '/index.html', '/.env', '/../etc'],
      ...['/API/jobs', '/apix', '/admin.php', '/favicon.ico', '//', '//health', '/health%2F'],
    ]) {
      expectRefusal(await platform.request('GET', path), 404, 'not_found');
    }
    for (const path of ['/api', '/api/', '/api/x', '/api/jobs/', '/api//jobs', '/api/jobs/x/y/z']) {
      expectRefusal(await tenant.get(path), 404, 'not_found');
    }
    for (const path of [
      '/admin',
      '/admin/',
      '/admin/x',
      '/admin/api-keys/',
      '/admin/api-keys/x/y',
    ]) {
      expectRefusal(await platform.admin('GET', path), 404, 'not_found');
    }
  });

  test('a known path with another method is 405 method_not_allowed with Allow', async () => {
    const tenant = await newTenant(platform);
    const id = '0198c0de-0000-7000-8000-000000000000';
    const allowed: [string, string][] = [
      ['/health', 'GET, HEAD'],
      ['/metrics', 'GET, HEAD'],
      ['/admin/api-keys', 'GET, HEAD, POST'],
      [`/admin/api-keys/${id}`, 'DELETE'],
      ['/admin/skills/a/v1.0/b/deprecate', 'POST'],
      ['/admin/skills/a/v1.0/b/activate', 'POST'],
      ['/api/skills', 'GET, HEAD'],
      ['/api/skills/a/v1.0/b', 'GET, HEAD'],
      ['/api/a/v1.0/b', 'POST'],
      ['/api/agents', 'GET, HEAD, POST'],
      ['/api/agents/default', 'DELETE, GET, HEAD, PUT'],
      ['/api/jobs', 'GET, HEAD'],
      [`/api/jobs/${id}`, 'GET, HEAD, PATCH'],
      ['/api/batches', 'GET, HEAD, POST'],
      [`/api/jobs/${id}/cancel`, 'POST'],
      [`/api/jobs/${id}/retry`, 'POST'],
      [`/api/jobs/${id}/events`, 'GET'],
      ['/api/conversations', 'GET, HEAD'],
      [`/api/conversations/${id}`, 'GET, HEAD'],
      [`/api/conversations/${id}/fork`, 'POST'],
      [`/api/conversations/${id}/messages`, 'GET, HEAD'],
      [`/api/conversations/${id}/token-usage`, 'GET, HEAD'],
    ];

    for (const [path, allow] of allowed) {
      for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        if (allow.split(', ').includes(method)) continue;
        const answer = path.startsWith('/admin')
          ? await platform.admin(method, path)
          : await tenant.send(method, path);
        expectRefusal(answer, 405, 'method_not_allowed');
        expect({ path, allow: answer.headers.get('allow') }).toEqual({ path, allow });
      }
    }
  });

  test('HEAD answers as GET does, without the body', async () => {
    const tenant = await newTenant(platform);

    for (const path of ['/api/skills', '/api/agents', '/api/agents/nobody', '/health']) {
      const get = await tenant.get(path);
      const head = await tenant.send('HEAD', path);

      expect({ status: head.status, text: head.text }).toEqual({ status: get.status, text: '' });
      expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'));
    }
  });
});

describe('503 service_unavailable', () => {
  test('is not the answer to work that was accepted before the wait for its end went wrong', async () => {
    const broken = await startStaged();
    const tenant = await newTenant(broken);
    await tenant.post(any, '1');
    const { read } = broken.database as { read: { first: unknown } };
    const { first } = read;
    const { write } = broken.database;
    // From the commit on.
    (broken.database as { write: unknown }).write = async (run: never) => {
      const written = await write.call(broken.database, run);
      read.first = () => Promise.reject(serviceUnavailable());
      return written;
    };

    // A job that failed is read again for its answer, one that completed is not.
    const failing = acting({ fail: { message: 'no', retryable: false } });
    const answer = await tenant.post(`/api/${play}`, failing, { prefer: 'wait=5' });

    read.first = first;
    (broken.database as { write: unknown }).write = write;
    await broken.stop();
    expect(answer.status).toBe(202);
    expect(answer.body).toMatchObject({ job_id: expect.any(String), status: 'queued' });
  });

  test('comes with Retry-After when the database cannot be used', async () => {
    const broken = await startStaged();
    const tenant = await newTenant(broken);
    const { database } = broken;
    const { write } = database;
    (database as { write: unknown }).write = () => Promise.reject(serviceUnavailable());

    const accept = await tenant.post(any, '1');
    const change = await tenant.post('/api/agents', {});
    const read = await tenant.get('/api/jobs');

    (database as { write: unknown }).write = write;
    const again = await tenant.post(any, '1');
    await broken.stop();
    for (const answer of [accept, change]) {
      expectRefusal(answer, 503, 'service_unavailable');
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    }
    expect(read.status).toBe(200);
    expect(again.status).toBe(202);
  });
});

test('a field of a wrong type is named by its path', async () => {
  const tenant = await newTenant(platform);

  expectInvalid(await tenant.post('/api/agents', { skills: ['web/*', 5] }), 'skills.1');
});

test('malformed JSON on an unknown route is 404, on a known one with a wrong method 405', async () => {
  const tenant = await newTenant(platform);

  for (const body of ['{', '', 'x'.repeat(mebibyte + 1)]) {
    for (const [path, wrong] of [
      ['/nowhere', '/health'],
      ['/api/nowhere', '/api/jobs'],
    ] as const) {
      expectRefusal(await tenant.send('POST', path, { body }), 404, 'not_found');
      expectRefusal(await tenant.send('POST', wrong, { body }), 405, 'method_not_allowed');
    }
    expectRefusal(await platform.admin('POST', '/admin/nowhere', body), 404, 'not_found');
  }
});

test('an operation without a body refuses fields', async () => {
  const tenant = await newTenant(platform);
  const { body: job } = await tenant.run(
    play,
    acting({ fail: { message: 'x', retryable: false } }),
  );
  const retry = (body: unknown) => tenant.post(`/api/jobs/${job.job_id}/retry`, body);

  expectInvalid(await retry({ input: 1 }), 'input');
  expectInvalid(await retry('[]'), 'body');
  expectInvalid(await retry('null'), 'body');
  expectRefusal(await retry('{'), 400, 'validation_error');
  const deprecate = '/admin/skills/util/v1.0/echo/deprecate';
  expectInvalid(await platform.admin('POST', deprecate, { reason: 'x' }), 'reason');
  expect((await tenant.get('/api/jobs')).body.total).toBe(1);
  expect((await retry({})).status).toBe(202);
  expect((await retry(undefined)).status).toBe(202);
});
