import { expect, test } from 'vitest';
import { createClient, JobFailedError, SkillwrightError } from './index.ts';

/** A client of a platform that gives these answers, one after the other. */
function clientOf(...answers: Response[]) {
  const calls: { method: string; path: string; headers: Headers }[] = [];
  const client = createClient({
    url: 'http://platform/',
    apiKey: 'secret',
    fetch: async (url, init) => {
      const headers = new Headers(init?.headers);
      calls.push({ method: init?.method ?? '', path: String(url), headers });
      return answers.shift() ?? Response.error();
    },
  });
  return { client, calls };
}

const job = (status: string, fields: object = {}) =>
  Response.json({ job_id: 'j1', status, output: null, error: null, ...fields });

test('run waits for the end of the job and returns its output', async () => {
  const ended = job('completed', { output: { words: 2 } });
  const { client, calls } = clientOf(job('queued'), job('active'), ended);

  expect(await client.run('text/v1.0/word-count', { text: 'a b' })).toEqual({ words: 2 });

  expect(calls.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST http://platform/api/text/v1.0/word-count',
    'GET http://platform/api/jobs/j1',
    'GET http://platform/api/jobs/j1',
  ]);
  expect(calls[0]?.headers.get('x-api-key')).toBe('secret');
  expect(calls[0]?.headers.get('idempotency-key')).toMatch(/^[0-9a-f]{32}$/);
  expect(calls.every(({ headers }) => headers.get('prefer') === 'wait=60')).toBe(true);
});

test('a job that failed rejects with its code and its id', async () => {
  const error = { code: 'skill_timeout', message: 'too slow' };
  const { client } = clientOf(job('failed', { error }));

  const failure = await client.run('a/v1.0/b', {}).catch((reason: unknown) => reason);

  expect(failure).toBeInstanceOf(JobFailedError);
  expect(failure).toMatchObject({ code: 'skill_timeout', message: 'too slow', jobId: 'j1' });
});

test('a refusal rejects with code, status, request id and the time to wait', async () => {
  const headers = { 'x-request-id': 'r1', 'retry-after': '3' };
  const body = { error: 'rate_limited', message: 'Too many requests' };
  const { client } = clientOf(Response.json(body, { status: 429, headers }));

  const failure = await client.run('a/v1.0/b', {}).catch((reason: unknown) => reason);

  expect(failure).toBeInstanceOf(SkillwrightError);
  const facts = { code: 'rate_limited', status: 429, requestId: 'r1', retryAfterMs: 3_000 };
  expect(failure).toMatchObject(facts);
});

test('a platform that does not answer rejects with the code unreachable', async () => {
  const client = createClient({
    url: 'http://platform',
    fetch: () => Promise.reject(new TypeError('fetch failed')),
  });
  const failure = client.run('a/v1.0/b', {});
  await expect(failure).rejects.toMatchObject({ code: 'unreachable', status: 0 });
});

test('request reaches any operation, those below /admin with the admin secret', async () => {
  const calls: { path: string; headers: Headers }[] = [];
  const client = createClient({
    url: 'http://platform',
    apiKey: 'key',
    adminSecret: 'secret',
    fetch: async (url, init) => {
      calls.push({ path: String(url), headers: new Headers(init?.headers) });
      return new Response(null, { status: 204 });
    },
  });
  const query = { limit: 5, status: undefined };
  expect(await client.request({ method: 'GET', path: '/api/jobs', query })).toBeNull();
  await client.request({ method: 'DELETE', path: '/admin/api-keys/k' });
  expect(calls.map(({ path, headers }) => [path, ...headers.keys()])).toEqual([
    ['http://platform/api/jobs?limit=5', 'accept', 'x-api-key'],
    ['http://platform/admin/api-keys/k', 'accept', 'authorization'],
  ]);
});

test('stream yields server-sent events as they come', async () => {
  const parts = [': connected\n\nid: 1.0\nevent: sta', 'tus\ndata: {"a":1}\n\n', 'event: cut'];
  const { client } = clientOf(
    new Response(ReadableStream.from(parts.map((part) => new TextEncoder().encode(part)))),
  );
  const events = await Array.fromAsync(client.stream({ method: 'GET', path: '/api/x' }));
  expect(events).toEqual([{ id: '1.0', event: 'status', data: { a: 1 } }]);
});
