import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectRateLimitHeaders, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { openRaw, type RawConnection, sendRaw } from '../support/raw-http.ts';
import { isInstalled, migratedDatabase } from '../support/shared-servers.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
let key: string;
beforeAll(async () => {
  platform = await startStaged();
  ({ key } = await newTenant(platform));
});
afterAll(() => platform.stop());
// Whatever was sent, the server stays up.
afterEach(async () => {
  expect((await platform.request('GET', '/health')).body.status).toBe('ok');
});

const echoPath = '/api/util/v1.0/echo';
/** A request by its first line and further headers. */
const head = (line: string, ...headers: string[]) =>
  `${[`${line} HTTP/1.1`, 'Host: x', `x-api-key: ${key}`, ...headers].join('\r\n')}\r\n\r\n`;
const post = (...headers: string[]) =>
  head(`POST ${echoPath}`, 'content-type: application/json', ...headers);

/** The one answer, after which the server closes. */
async function cutOff(bytes: string | Uint8Array) {
  const connection = openRaw(platform.url);
  connection.send(bytes);
  const [answer, ...others] = await connection.closed();
  expect(others).toEqual([]);
  return answer!;
}

describe('a request that is not HTTP gets a 400 in the documented form, and the connection is closed', () => {
  test.each<[string, () => string | Uint8Array]>([
    ['a header with a space in its name', () => head('GET /health', 'bad header: 1')],
    ['a header without a colon', () => head('GET /health', 'nonsense')],
    ['a header with a NUL', () => head('GET /health', 'a: b\0c')],
    ['a folded header', () => head('GET /health', 'a: b', ' c')],
    ['two different Content-Lengths', () => `${post('content-length: 2', 'content-length: 3')}{}`],
    ['two equal Content-Lengths', () => `${post('content-length: 2', 'content-length: 2')}{}`],
    [
      'Content-Length and Transfer-Encoding',
      () => `${post('content-length: 2', 'transfer-encoding: chunked')}2\r\n{}\r\n0\r\n\r\n`,
    ],
    ['a Content-Length that is negative', () => `${post('content-length: -1')}{}`],
    ['a Content-Length that is no number', () => `${post('content-length: 2x')}{}`],
    [
      'a Content-Length beyond all numbers',
      () => `${post('content-length: 99999999999999999999999')}{}`,
    ],
    [
      'a chunk whose size is no number',
      () => `${post('transfer-encoding: chunked')}zz\r\n{}\r\n0\r\n\r\n`,
    ],
    [
      'a chunk that is longer than it says',
      () => `${post('transfer-encoding: chunked')}1\r\n{}\r\n0\r\n\r\n`,
    ],
    ['an unknown transfer encoding', () => `${post('transfer-encoding: identity')}{}`],
    ['a raw NUL in the path', () => head('GET /api/ag\0ents')],
    ['raw UTF-8 in the path', () => head('GET /api/agents/é')],
    ['a space in the path', () => head('GET /api/jo bs')],
    ['lines that end without a carriage return', () => 'GET /health HTTP/1.1\nHost: x\n\n'],
    ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['an HTTP version that there is not', () => 'GET /health HTTP/9.9\r\nHost: x\r\n\r\n'],
  ])('%s', async (_what, bytes) => {
    expectRefusal(await cutOff(bytes()), 400, 'validation_error');
  });

  test('a request without Host is 400', async () => {
    const answer = await sendRaw(platform.url, 'GET /health HTTP/1.1\r\n\r\n');

    expectRefusal(answer, 400, 'validation_error');
    const old = await sendRaw(platform.url, 'GET /health HTTP/1.0\r\n\r\n');
    expect(old.status).toBe(200);
  });

  test.each([
    ['two Host headers', 'Host: x\r\nHost: x'],
    ['two different Host headers', 'Host: x\r\nhOST: y'],
    ['a path in Host', 'Host: a/b@c'],
    ['credentials in Host', 'Host: a@b'],
    ['a quote in Host', 'Host: localhost/"x'],
    ['a space in Host', 'Host: a b'],
    ['a port that is no number', 'Host: a:http'],
  ])('%s is 400 on every path', async (_what, hosts) => {
    for (const line of ['GET /health', 'GET /api/jobs', 'GET /nowhere', 'GET /docs']) {
      const answer = await sendRaw(platform.url, `${line} HTTP/1.1\r\n${hosts}\r\n\r\n`);

      expectRefusal(answer, 400, 'validation_error');
    }
    // In the form of JSON-RPC, and nothing of the host comes back.
    const mcp = await sendRaw(platform.url, `POST /mcp HTTP/1.1\r\n${hosts}\r\n\r\n`);
    expect(mcp.status).toBe(400);
    expect(mcp.body.error.data.error).toBe('validation_error');
    expect(mcp.headers['www-authenticate']).toBeUndefined();
    const old = await sendRaw(platform.url, `GET /health HTTP/1.0\r\n${hosts}\r\n\r\n`);
    expectRefusal(old, 400, 'validation_error');
  });

  test('a host with credentials in the url is 400', async () => {
    expectRefusal(
      await sendRaw(platform.url, head('GET http://a@b/health')),
      400,
      'validation_error',
    );
  });

  test.each(['FOO', 'get', 'GETX', 'BREW'])(
    'an unknown method is 405 with Allow: %s',
    async (method) => {
      for (const path of ['/health', '/api/jobs', '/admin/api-keys', '/nowhere']) {
        const answer = await cutOff(head(`${method} ${path}`));

        expectRefusal(answer, 405, 'method_not_allowed');
        expect(answer.headers['allow']).toMatch(/\bGET\b/);
      }
    },
  );

  test('a TLS handshake on the plain port is refused at once', async () => {
    const hello = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03];

    const { status } = await cutOff(new Uint8Array(hello));

    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
  });

  test('earlier requests on the connection have been answered', async () => {
    const connection = openRaw(platform.url);

    connection.send(`${head('GET /health')}${head('GET /health', 'bad header: 1')}`);

    const answers = await connection.closed();
    expect(answers.map(({ status }) => status)).toEqual([200, 400]);
  });
});

describe('a method that no route has', () => {
  test.each(['TRACE', 'PATCH', 'PROPFIND', 'QUERY', 'LOCK', 'PURGE'])(
    '%s is 405 on a known path and 404 on an unknown one',
    async (method) => {
      for (const path of ['/api/jobs', '/api/agents/default', '/health', echoPath]) {
        const answer = await sendRaw(platform.url, head(`${method} ${path}`));

        expectRefusal(answer, 405, 'method_not_allowed');
        expect(answer.headers['allow']).toMatch(/GET|POST/);
        expect(answer.text).not.toContain(key);
      }
      const unknown = await sendRaw(platform.url, head(`${method} /api/nowhere`));
      expectRefusal(unknown, 404, 'not_found');
    },
  );

  test('CONNECT is refused: this is no proxy', async () => {
    const answer = await cutOff(
      'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n',
    );

    expectRefusal(answer, 405, 'method_not_allowed');
  });

  test('an upgrade to an unsupported protocol is ignored', async () => {
    const request = head('GET /health', 'connection: upgrade', 'upgrade: websocket');

    expect((await sendRaw(platform.url, request)).status).toBe(200);
  });

  test('OPTIONS * is answered', async () => {
    const { status } = await sendRaw(platform.url, head('OPTIONS *'));

    expect([404, 405]).toContain(status);
  });
});

describe('an expectation', () => {
  const body = '{"text":"x"}';

  test('100-continue is met, and refused requests are refused at once', async () => {
    const good = openRaw(platform.url);
    good.send(post(`content-length: ${body.length}`, 'expect: 100-continue'));
    good.send(body);
    const [accepted] = await good.answers(1);
    good.destroy();
    const large = openRaw(platform.url);
    large.send(post('content-length: 99999999', 'expect: 100-continue'));
    const [refused] = await large.answers(1);
    large.destroy();

    expect(accepted?.status).toBe(202);
    expectRefusal(refused!, 413, 'payload_too_large');
  });

  test('of anything else is ignored', async () => {
    const request = `${post(`content-length: ${body.length}`, 'expect: wonders')}${body}`;

    expect((await sendRaw(platform.url, request)).status).toBe(202);
  });
});

describe('the size of a request head', () => {
  test.each<[string, () => string]>([
    ['one header of 17 kB', () => head('GET /health', `a: ${'x'.repeat(17_000)}`)],
    ['2,500 headers', () => head('GET /health', ...Array.from({ length: 2_500 }, () => 'a: 1'))],
    [
      '2,500 headers of a known caller',
      () => head('GET /api/jobs', ...Array.from({ length: 2_500 }, () => 'a: 1')),
    ],
    ['a url of 17 kB', () => head(`GET /api/jobs?x=${'x'.repeat(17_000)}`)],
    [
      'an admin secret of 100 kB',
      () => head('GET /admin/api-keys', `x-admin-secret: ${'x'.repeat(100_000)}`),
    ],
  ])('too large is 431: %s', async (_what, bytes) => {
    expectRefusal(await cutOff(bytes()), 431, 'validation_error');
  });

  test('a header that comes after 2,000 others is not lost', async () => {
    const headers = Array.from({ length: 2_100 }, () => 'a:');
    const line = `GET /api/agents HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}`;

    const answer = await sendRaw(
      platform.url,
      `${line}\r\n${headers.join('\r\n')}\r\nx-api-key: ${key}\r\n\r\n`,
    );

    // Either all are read, and the second key is found, or there are too many.
    expect([401, 431]).toContain(answer.status);
  });

  test('a url of 9 kB is no route: 404', async () => {
    for (const path of ['/', '/api/', '/api/agents/', '/api/jobs/', '/api/skills/a/v1.0/']) {
      const answer = await sendRaw(platform.url, head(`GET ${path}${'x'.repeat(9_000)}`));

      expect(answer.status).toBe(404);
      expect(['not_found', 'skill_not_found']).toContain(answer.body.error);
    }
    const deep = await sendRaw(platform.url, head(`GET ${'/x'.repeat(4_500)}`));
    expectRefusal(deep, 404, 'not_found');
  });
});

const databases: [string, boolean][] = [
  ['SQLite', true],
  ['PostgreSQL', await isInstalled('PostgreSQL')],
];

describe.each(databases.filter(([, isHere]) => isHere))('percent-escapes, on %s', (name) => {
  let other: Platform;
  let otherKey: string;
  beforeAll(async () => {
    const environment: Record<string, string> =
      name === 'SQLite' ? {} : { DATABASE_URL: await migratedDatabase() };
    other = await startStaged({ environment });
    ({ key: otherKey } = await newTenant(other));
  });
  afterAll(() => other.stop());

  const get = (path: string) =>
    sendRaw(
      other.url,
      `GET ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${otherKey}\r\nx-admin-secret: x\r\n\r\n`,
    );

  test.each([
    '%',
    '%z',
    '%zz',
    '%2',
    '%u0041',
    '%ff',
    '%c0%af',
    '%ed%a0%80',
    '%f4%90%80%80',
    '%00',
    'a%00b',
  ])('%s in a path or a query is 400 validation_error', async (text) => {
    for (const path of [
      `/api/agents/${text}`,
      `/api/jobs/${text}`,
      `/api/jobs/${text}/events`,
      `/api/conversations/${text}/messages`,
      `/api/skills/${text}/v1.0/x`,
      `/api/${text}`,
      `/api/jobs?agent_id=${text}`,
      `/api/conversations?user_id=${text}&limit=5`,
      `/api/skills?category=${text}`,
      `/api/skills?${text}=x`,
      `/api/agents?unknown=${text}`,
    ]) {
      const answer = await get(path);

      expectRefusal(answer, 400, 'validation_error');
      expectRateLimitHeaders(answer);
    }
    expectRefusal(await get(`/nowhere/${text}`), 400, 'validation_error');
    expectRefusal(await get(`/admin/api-keys/${text}`), 401, 'invalid_admin_secret');
  });

  test('clean ones are read', async () => {
    expect((await get('/api/agents/%64efault')).status).toBe(200);
    expect((await get('/api/%6Aobs')).status).toBe(200);
    expect((await get('/api/jobs?agent%5Fid=%F0%9F%8F%94&limit=%35')).body.limit).toBe(5);
    expectRefusal(await get('/api/agents/%F0%9F%8F%94'), 404, 'not_found');
    expectRefusal(await get('/api/agents/%25%2F%3F'), 404, 'not_found');
  });
});

test('a url in absolute form, as proxies send it, is the same as its path', async () => {
  const send = (line: string) => sendRaw(platform.url, head(line));

  expect((await send('GET http://x/api/agents?limit=1')).body.limit).toBe(1);
  expect((await send('GET HTTP://x:80/health')).status).toBe(200);
  expectRefusal(await send('GET http://x/api/nowhere'), 404, 'not_found');
  expectRefusal(await send('GET http://x'), 404, 'not_found');
  const wrong = await send('DELETE http://x/api/jobs');
  expectRefusal(wrong, 405, 'method_not_allowed');
  expect(wrong.headers['allow']).toBe('GET, HEAD');
  const noKey = 'GET http://x/api/nowhere HTTP/1.1\r\nHost: x\r\n\r\n';
  expectRefusal(await sendRaw(platform.url, noKey), 401, 'authentication_required');
});

describe('pipelined requests', () => {
  test('100 are answered in their order', async () => {
    const connection = openRaw(platform.url);
    const requests = Array.from({ length: 100 }, (_, i) =>
      head(i % 3 === 0 ? `GET /api/jobs?limit=${i + 1}` : 'GET /health', `x-request-id: r${i}`),
    );

    connection.send(requests.join(''));

    const answers = await connection.answers(100);
    connection.destroy();
    expect(answers.map(({ headers }) => headers['x-request-id'])).toEqual(
      requests.map((_, i) => `r${i}`),
    );
    expect(answers[99]?.body.limit).toBe(100);
  });

  test('50 executions and refusals among them, each with its own answer', async () => {
    const connection = openRaw(platform.url);
    const request = (i: number) => {
      const body = i % 5 === 4 ? '{"text":1}' : `{"text":"${i}"}`;
      return `${post(`content-length: ${body.length}`, 'prefer: wait=30')}${body}`;
    };

    connection.send(Array.from({ length: 50 }, (_, i) => request(i)).join(''));

    const answers = await connection.answers(50);
    connection.destroy();
    for (const [i, { status, body }] of answers.entries()) {
      expect([i, status, body.input?.text]).toEqual(
        i % 5 === 4 ? [i, 400, undefined] : [i, 200, `${i}`],
      );
    }
  });
});

describe('slow and half-open clients are cut by time limits', () => {
  let patient: Platform;
  beforeAll(async () => {
    patient = await startStaged();
    // Those of production, shortened; Node looks at every connection once a second.
    Object.assign(patient.app.server.server, {
      headersTimeout: 300,
      requestTimeout: 600,
      keepAliveTimeout: 300,
    });
  });
  afterAll(() => patient.stop());

  /** Sends a byte every now and then until the connection is closed. */
  async function drip(connection: RawConnection, bytes: string): Promise<void> {
    let sent = 0;
    await waitFor(
      () => {
        if (connection.isClosed()) return true;
        connection.send(bytes[sent++ % bytes.length] as string);
        return false;
      },
      { describe: 'the slow client is cut', everyMs: 50 },
    );
  }

  test('slow headers', async () => {
    const connection = openRaw(patient.url);
    connection.send('GET /health HTTP/1.1\r\nHost: x\r\na: ');

    await drip(connection, 'x');

    const [answer] = await connection.closed();
    expectRefusal(answer!, 408, 'validation_error');
  });

  test('a slow body', async () => {
    const tenant = await newTenant(patient);
    const connection = openRaw(patient.url);
    connection.send(post('content-length: 1000').replace(key, tenant.key));

    await drip(connection, ' ');

    const answers = await connection.closed();
    for (const answer of answers) expectRefusal(answer, 408, 'validation_error');
    expect((await tenant.get('/api/jobs')).body.total).toBe(0);
  });

  test('a body that stops half way', async () => {
    const tenant = await newTenant(patient);
    const connection = openRaw(patient.url);

    connection.send(`${post('content-length: 1000').replace(key, tenant.key)}{"te`);

    await connection.closed();
    expect((await tenant.get('/api/jobs')).body.total).toBe(0);
  });

  test('a silent connection, before and after a request', async () => {
    const silent = openRaw(patient.url);
    const idle = openRaw(patient.url);
    idle.send(head('GET /health'));
    await idle.answers(1);

    await Promise.all([silent.closed(), idle.closed()]);
  });

  test('while they are, others are served', async () => {
    const tenant = await newTenant(patient);
    const slow = Array.from({ length: 500 }, () => openRaw(patient.url));
    for (const [i, connection] of slow.entries()) {
      connection.send(i % 2 === 0 ? 'GET /health HTTP/1.1\r\nHo' : '');
    }

    const answers = await Promise.all(
      Array.from({ length: 20 }, () => tenant.run('util/v1.0/echo', { text: 'x' })),
    );

    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    await waitFor(() => slow.every((connection) => connection.isClosed()), {
      describe: 'all slow clients are cut',
    });
  });

  test('a client that waits for a long answer is not slow', async () => {
    const tenant = await newTenant(patient);

    const { status, body } = await tenant.run('util/v1.0/wait', { ms: 2_500 });

    expect({ status, state: body.status }).toEqual({ status: 200, state: 'completed' });
  });
});

describe('a client that goes away', () => {
  test('in the middle of its body leaves no job and no trace', async () => {
    const tenant = await newTenant(platform);
    for (let i = 0; i < 20; i++) {
      const connection = openRaw(platform.url);
      connection.send(`${post('content-length: 1000').replace(key, tenant.key)}{"te`);
      connection.destroy();
    }

    expect((await tenant.get('/api/jobs')).body.total).toBe(0);
  });

  test('while it waits for the end of its job harms neither', async () => {
    const tenant = await newTenant(platform);
    const body = '{"ms":300}';
    const connection = openRaw(platform.url);
    connection.send(
      head(
        'POST /api/util/v1.0/wait',
        'content-type: application/json',
        'prefer: wait=30',
        `content-length: ${body.length}`,
      ).replace(key, tenant.key) + body,
    );
    const job = await waitFor(async () => (await tenant.get('/api/jobs')).body.data[0], {
      describe: 'the job is accepted',
    });

    connection.destroy();

    expect((await tenant.jobIn(job.job_id, 'completed')).status).toBe(200);
  });
});
