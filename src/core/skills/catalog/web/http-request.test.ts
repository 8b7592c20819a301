import type { RequestListener } from 'node:http';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type Receiver, receiveHttp } from '../../../../../test/fixtures/receiver/receiver.ts';
import { allows, trySkill } from '../../../../../test/support/try-skill.ts';
import httpRequest from './http-request.ts';

const receivers: Receiver[] = [];

beforeEach(() => {
  vi.stubEnv('SKILLS_ALLOW_CIDRS', '127.0.0.1');
});
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const receiver of receivers.splice(0)) await receiver.close();
});

async function served(handler: RequestListener): Promise<string> {
  const receiver = await receiveHttp(handler);
  receivers.push(receiver);
  return receiver.origin;
}

/** Answers with the request it got. */
const echo: RequestListener = (request, response) => {
  const chunks: Buffer[] = [];
  request
    .on('data', (chunk) => chunks.push(chunk))
    .on('end', () => {
      const seen = {
        method: request.method,
        type: request.headers['content-type'],
        token: request.headers['x-token'],
        body: `${Buffer.concat(chunks)}`,
      };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(seen));
    });
};

const answering =
  (body: string | Buffer, type = '', status = 200): RequestListener =>
  (_request, response) =>
    response.writeHead(status, type === '' ? {} : { 'content-type': type }).end(body);

describe('a request', () => {
  test('is sent again after the time for which a 429 puts it off', async () => {
    const url = await served((_request, response) =>
      response.writeHead(429, { 'retry-after': '7' }).end(),
    );

    await expect(trySkill(httpRequest, { url, method: 'POST' })).rejects.toMatchObject({
      code: 'upstream_unavailable',
      retryable: true,
      retryAfterMs: 7_000,
    });
  });

  test.each([
    [429, {}],
    [429, { 'retry-after': 'soon' }],
    [503, { 'retry-after': '7' }],
  ])('is answered with %i and %j', async (status, headers) => {
    const url = await served((_request, response) => response.writeHead(status, headers).end());

    expect(await trySkill(httpRequest, { url })).toMatchObject({ status });
  });

  test.each([
    [{}, 'GET', undefined, ''],
    [{ method: 'POST', body: 'hä' }, 'POST', 'text/plain; charset=utf-8', 'hä'],
    [{ method: 'POST', body: { a: [1] } }, 'POST', 'application/json', '{"a":[1]}'],
    [{ method: 'PUT', body: false }, 'PUT', 'application/json', 'false'],
    [{ method: 'PATCH', body: [] }, 'PATCH', 'application/json', '[]'],
    [{ method: 'DELETE' }, 'DELETE', undefined, ''],
    [
      { method: 'POST', body: '<a/>', headers: { 'Content-Type': 'text/xml' } },
      'POST',
      'text/xml',
      '<a/>',
    ],
  ] as const)('%j is sent as it is meant', async (asked, method, type, body) => {
    const { json } = await trySkill(httpRequest, {
      url: await served(echo),
      headers: { 'X-Token': 't' },
      ...asked,
    });

    const seen = 'headers' in asked ? { method, body } : { method, body, token: 't' };
    expect(json).toMatchObject(type === undefined ? seen : { ...seen, type });
  });

  test.each(['GET', 'HEAD'] as const)('with %s has no body', async (method) => {
    const asked = { url: 'https://example.com/', method, body: 'x' };

    await expect(trySkill(httpRequest, asked)).rejects.toMatchObject({ retryable: false });
  });

  test.each([
    { method: 'TRACE' },
    { headers: { 'bad name': 'x' } },
    { headers: { a: 1 } },
    { body: null },
    { timeout_ms: 60_000 },
    { more: 1 },
  ])('with %j is refused', (asked) => {
    expect(allows(httpRequest.parameters, { url: 'https://example.com/', ...asked })).toBe(false);
  });

  test.each([{ Host: 'other' }, { 'Content-Length': '5' }, { a: 'b\r\nc: d' }])(
    'cannot set the headers %j',
    async (headers) => {
      const url = await served(echo);

      await expect(trySkill(httpRequest, { url, headers })).rejects.toMatchObject({
        retryable: false,
      });
    },
  );
});

describe('an answer', () => {
  test.each([200, 201, 301, 404, 500, 503])('with status %i is an answer', async (status) => {
    const url = await served(answering('x', 'text/plain', status));

    expect(await trySkill(httpRequest, { url })).toMatchObject({ status, body: 'x' });
  });

  test('has its headers in lower case, joined where they came several times', async () => {
    const url = await served((_request, response) =>
      response.writeHead(200, { 'X-A': ['1', '2'], ETag: '"e"' }).end(),
    );

    const { headers, url: answered, duration_ms } = await trySkill(httpRequest, { url });

    expect(headers).toMatchObject({ 'x-a': '1, 2', etag: '"e"' });
    expect(answered).toBe(`${url}/`);
    expect(duration_ms).toBeGreaterThanOrEqual(0);
  });

  test.each<[string, string | Buffer, object]>([
    ['application/json', '{"a":1}', { body: '{"a":1}', body_encoding: 'text', json: { a: 1 } }],
    ['application/problem+json', 'null', { body: 'null', json: null }],
    ['text/plain', '[1]', { json: [1] }],
    ['', '"x"', { json: 'x' }],
    ['text/html; charset=iso-8859-1', Buffer.from('\xfc', 'latin1'), { body: 'ü' }],
    ['image/svg+xml', '<svg/>', { body: '<svg/>', body_encoding: 'text' }],
    ['image/png', Buffer.from([0x89, 0, 0xff]), { body: 'iQD/', body_encoding: 'base64' }],
    ['application/octet-stream', 'readable', { body: 'readable', body_encoding: 'text' }],
    ['text/plain', '', { body: '', body_encoding: 'text' }],
  ])('of type %j with %j is read', async (type, body, expected) => {
    expect(await trySkill(httpRequest, { url: await served(answering(body, type)) })).toMatchObject(
      expected,
    );
  });

  test.each([
    ['no JSON', '{a:1}'],
    ['a NUL in a text', '{"a":"\\u0000"}'],
    ['half a character in a name', '{"\\ud800":1}'],
    ['more levels than can be kept', '['.repeat(80) + ']'.repeat(80)],
    ['levels without end', '['.repeat(100_000)],
  ])('with %s is text only', async (_what, body) => {
    const url = await served(answering(body, 'application/json'));

    const result = await trySkill(httpRequest, { url });

    expect(result).not.toHaveProperty('json');
    expect(result.body).toBe(body);
  });

  test('that is long is cut, and not taken for JSON then', async () => {
    const url = await served(answering(`${'1'.repeat(300_000)}`, 'application/json'));

    const result = await trySkill(httpRequest, { url });

    expect([result.body.length, result.truncated]).toEqual([262_144, true]);
    expect(result).not.toHaveProperty('json');
  });

  test('that redirects is followed, or returned when that is wished', async () => {
    const origin = await served((request, response) => {
      if (request.url === '/a') response.writeHead(302, { location: '/b' }).end();
      else response.end('arrived');
    });

    const followed = await trySkill(httpRequest, { url: `${origin}/a` });
    const returned = await trySkill(httpRequest, { url: `${origin}/a`, max_redirects: 0 });

    expect(followed).toMatchObject({ url: `${origin}/b`, body: 'arrived' });
    expect(returned).toMatchObject({ status: 302, headers: { location: '/b' } });
  });
});

describe('a request without an answer', () => {
  test.each([
    ['GET', true],
    ['PUT', true],
    ['DELETE', true],
    ['POST', false],
    ['PATCH', false],
  ] as const)('with %s may be sent again after it arrived: %s', async (method, retryable) => {
    const url = await served((request) => request.socket.destroy());

    await expect(trySkill(httpRequest, { url, method })).rejects.toMatchObject({
      code: 'upstream_unavailable',
      retryable,
    });
  });

  test.each(['GET', 'POST'] as const)(
    'with %s may be sent again when it never arrived',
    async (method) => {
      const url = await served(echo);
      await receivers[0]?.close();

      await expect(trySkill(httpRequest, { url, method })).rejects.toMatchObject({
        code: 'upstream_unavailable',
        retryable: true,
      });
    },
  );

  test.each([
    'http://169.254.169.254/latest/',
    'http://[::ffff:10.0.0.1]/',
    'https://example.com:22/',
  ])('to %s is never sent', async (url) => {
    vi.stubEnv('SKILLS_ALLOW_CIDRS', '');

    await expect(trySkill(httpRequest, { url })).rejects.toMatchObject({
      code: 'skill_execution_failed',
      retryable: false,
    });
  });
});
