/** Calls of skills, and what the client does with refusals and faults. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  type Client,
  type ClientOptions,
  createClient,
  JobFailedError,
  type Retry,
  SkillwrightError,
} from './index.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
});
afterEach(() => {
  vi.useRealTimers();
});

type Scripted = Response | Error;

/** A client of a platform that gives these answers, one after the other. */
function clientOf(answers: Scripted[], options: Partial<ClientOptions> = {}) {
  const calls: { request: string; headers: Headers; body: unknown; at: number }[] = [];
  const begun = Date.now();
  const client = createClient({
    url: 'http://platform/',
    apiKey: 'key',
    adminSecret: 'admin',
    fetch: async (url, init) => {
      init?.signal?.throwIfAborted();
      const headers = new Headers(init?.headers);
      const given = init?.body;
      const body: unknown =
        given === undefined
          ? undefined
          : given instanceof Blob
            ? await given.text()
            : JSON.parse(String(given));
      const request = `${init?.method} ${String(url).replace('http://platform', '')}`;
      calls.push({ request, headers, body, at: Date.now() - begun });
      const answer = answers.shift() ?? new TypeError('nothing is left to answer');
      if (answer instanceof Error) throw answer;
      return answer;
    },
    ...options,
  });
  return { client, calls };
}

/** What became of a call, with all its pauses over. */
async function settled(call: PromiseLike<unknown>): Promise<unknown> {
  const outcome = Promise.resolve(call).catch((error: unknown) => error);
  await vi.runAllTimersAsync();
  return await outcome;
}

const job = (status: string, fields: object = {}) =>
  Response.json({ job_id: 'j1', status, output: null, error: null, ...fields });
const refusal = (status: number, error: string, headers: Record<string, string> = {}) =>
  Response.json({ error, message: 'The reason' }, { status, headers });
const fault = () => new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') });
const skill = 'text/v1.0/word-count';

test('run waits for the end of the job and returns its output', async () => {
  const ended = job('completed', { output: { words: 2 } });
  const { client, calls } = clientOf([job('queued'), job('waiting'), ended]);

  expect(await client.run(skill, { text: 'a b' })).toEqual({ words: 2 });

  expect(calls.map(({ request }) => request)).toEqual([
    'POST /api/text/v1.0/word-count',
    'GET /api/jobs/j1',
    'GET /api/jobs/j1',
  ]);
  expect(calls[0]?.headers.get('x-api-key')).toBe('key');
  expect(calls[0]?.headers.get('idempotency-key')).toMatch(/^[0-9a-f]{32}$/);
  expect(calls.every(({ headers }) => headers.get('prefer') === 'wait=60')).toBe(true);
});

test('a wait is shorter than the time for one request', async () => {
  const { client, calls } = clientOf([job('completed')], { timeoutMs: 10_000 });
  await client.run(skill, {});
  expect(calls[0]?.headers.get('prefer')).toBe('wait=5');
});

test('skills are functions: names in camel case lead to those in kebab case', async () => {
  const { client, calls } = clientOf([job('completed', { output: 1 }), job('queued')]);

  expect(await client.skills['webSearch']?.['wordCount']?.['v1_0']?.run({ a: 1 })).toBe(1);
  await client.skills['text']?.['sha-256']?.['v10_2']?.start({});

  const requests = calls.map(({ request }) => request);
  expect(requests).toEqual([
    'POST /api/web-search/v1.0/word-count',
    'POST /api/text/v10.2/sha-256',
  ]);
  expect(calls[0]?.body).toEqual({ a: 1 });
  expect(calls[1]?.headers.has('prefer')).toBe(false);
});

test('agent, user, conversation and idempotency key of a run are headers', async () => {
  const { client, calls } = clientOf([job('completed')]);
  const options = { agentId: 'a', userId: 'u', conversationId: 'c', idempotencyKey: 'k' };
  const conversationMode = 'queue' as const;
  await client.run(skill, {}, { ...options, conversationMode, headers: { 'x-request-id': 'r' } });
  expect(Object.fromEntries(calls[0]?.headers ?? [])).toMatchObject({
    ...{ 'x-agent-id': 'a', 'x-user-id': 'u', 'x-conversation-id': 'c' },
    'x-conversation-mode': 'queue',
    ...{ 'idempotency-key': 'k', 'x-request-id': 'r' },
  });
});

test('names in any script are sent as UTF-8', async () => {
  const { client, calls } = clientOf([job('completed'), Response.json({ id: 'f1' })]);
  const utf8 = (text: string) => Buffer.from(text).toString('latin1');

  await client.run(skill, {}, { userId: 'łuk', userName: 'Zoë 東京', jobKey: 'é' });
  await client.files.upload('x', { userId: 'łuk' });

  const [run, upload] = calls;
  expect(run?.headers.get('x-user-id')).toBe(utf8('łuk'));
  expect(run?.headers.get('x-user-name')).toBe(utf8('Zoë 東京'));
  expect(run?.headers.get('x-job-key')).toBe(utf8('é'));
  expect(upload?.headers.get('x-user-id')).toBe(utf8('łuk'));
});

test('what is no header is refused at once', async () => {
  const { client, calls } = clientOf([]);
  const headers = { 'x-tag': 'two\nlines' };

  await expect(client.run(skill, {}, { userId: 'two\nlines' })).rejects.toThrow(TypeError);
  await expect(client.job('j1').events({ headers })[Symbol.asyncIterator]().next()).rejects.toThrow(
    TypeError,
  );
  expect(calls).toEqual([]);
});

test('a user that is named by nothing is refused, so that no run is for all of them', async () => {
  const { client, calls } = clientOf([]);
  const forgotten = { userId: undefined as unknown as string };

  await expect(client.run(skill, {}, forgotten)).rejects.toThrow('userId is undefined');
  expect(() => client.files.upload('x', forgotten)).toThrow('userId is undefined');
  expect(calls).toEqual([]);
});

test('the times of a run are headers', async () => {
  const { client, calls } = clientOf([job('completed')]);
  const runAt = new Date('2030-01-01T00:00:00Z');
  await client.run(skill, {}, { runAt, delaySeconds: 5, expiresInSeconds: 9 });
  expect(Object.fromEntries(calls[0]?.headers ?? [])).toMatchObject({
    ...{ 'x-run-at': '2030-01-01T00:00:00.000Z', 'x-delay-seconds': '5', 'x-expires-in': '9' },
  });
});

test('the priority and the key of a run are headers', async () => {
  const { client, calls } = clientOf([job('completed')]);
  const calm = { debounceSeconds: 5, debounceMaxSeconds: 9 } as const;
  await client.run(skill, {}, { priority: 'low', jobKey: 'k', jobKeyMode: 'debounce', ...calm });
  expect(Object.fromEntries(calls[0]?.headers ?? [])).toMatchObject({
    ...{ 'x-priority': 'low', 'x-job-key': 'k', 'x-job-key-mode': 'debounce' },
    ...{ 'x-debounce-seconds': '5', 'x-debounce-max-seconds': '9' },
  });
});

test('a skill that is not named in full is refused before a request', async () => {
  const { client, calls } = clientOf([]);
  await expect(client.run('word-count', {})).rejects.toThrow(TypeError);
  expect(calls).toEqual([]);
});

test('a job that failed rejects with its code and its id', async () => {
  const error = { code: 'skill_timeout', message: 'too slow' };
  const { client } = clientOf([job('failed', { error })]);

  const failure = await client.run('a/v1.0/b', {}).catch((reason: unknown) => reason);

  expect(failure).toBeInstanceOf(JobFailedError);
  expect(failure).toMatchObject({ code: 'skill_timeout', message: 'too slow', jobId: 'j1' });
});

test('a refusal rejects with code, status, request id and faults', async () => {
  const details = [{ field: 'text', issue: 'is required' }];
  const body = { error: 'validation_error', message: 'text is required', details };
  const { client, calls } = clientOf([
    Response.json(body, { status: 400, headers: { 'x-request-id': 'r1' } }),
  ]);

  const failure = await client.run(skill, {}).catch((reason: unknown) => reason);

  expect(failure).toBeInstanceOf(SkillwrightError);
  const facts = { code: 'validation_error', status: 400, requestId: 'r1', details };
  expect(failure).toMatchObject(facts);
  expect(calls).toHaveLength(1);
});

test('429 is sent again after Retry-After, whatever the request', async () => {
  const limited = refusal(429, 'rate_limit_exceeded', { 'retry-after': '3' });
  const { client, calls } = clientOf([limited, Response.json({ id: 'reader' }, { status: 201 })]);

  expect(await settled(client.agents.create({ id: 'reader' }))).toEqual({ id: 'reader' });

  expect(calls).toHaveLength(2);
  expect(calls[1]?.at).toBeGreaterThanOrEqual(3_000);
  expect(calls[1]?.at).toBeLessThan(4_000);
});

test('a run is sent again after a fault, with the same idempotency key', async () => {
  const busy = refusal(503, 'service_unavailable', { 'retry-after': '1' });
  const { client, calls } = clientOf([fault(), busy, job('completed', { output: 7 })]);

  expect(await settled(client.run(skill, {}))).toBe(7);

  const keys = calls.map(({ headers }) => headers.get('idempotency-key'));
  expect(new Set(keys).size).toBe(1);
  expect(keys).toHaveLength(3);
});

test.each<[string, (client: Client) => PromiseLike<unknown>]>([
  ['a run', (client) => client.run(skill, {})],
  ['a start', (client) => client.start(skill, {})],
  ['an event', (client) => client.events.send({ event: 'paid', key: 'k' })],
  [
    'a request with an idempotency key',
    (client) =>
      client.request({
        method: 'POST',
        path: '/api/a/v1.0/b',
        headers: { 'Idempotency-Key': 'k' },
      }),
  ],
])('%s is retried for two minutes, then it rejects with the last fault', async (_what, make) => {
  const { client, calls } = clientOf([]);

  expect(await settled(make(client))).toMatchObject({ code: 'unreachable', status: 0 });

  const last = calls.at(-1)?.at ?? 0;
  expect(last).toBeGreaterThan(110_000);
  expect(last).toBeLessThan(140_000);
  expect(new Set(calls.map(({ headers }) => headers.get('idempotency-key'))).size).toBe(1);
  // Pauses grow: a platform that is away is not flooded.
  expect(calls.length).toBeLessThan(35);
});

test('the deadline and a signal end a start that is retried during an outage', async () => {
  const { client } = clientOf([]);
  const late = await settled(client.start(skill, {}, { deadlineMs: 5_000 }));
  expect(late).toMatchObject({ code: 'timeout', message: 'The call took longer than 5000 ms' });

  const reason = new Error('no longer needed');
  const leaving = new AbortController();
  const left = client.start(skill, {}, { signal: leaving.signal }).then(
    () => null,
    (error: unknown) => error,
  );
  await vi.advanceTimersByTimeAsync(10_000);
  leaving.abort(reason);
  expect(await left).toBe(reason);
});

test('without retries a start is sent once', async () => {
  const { client, calls } = clientOf([], { retries: 0 });
  expect(await settled(client.start(skill, {}))).toMatchObject({ code: 'unreachable' });
  expect(calls).toHaveLength(1);
});

test('retries end two minutes after the first fault, however long the request took before', async () => {
  const cutAfterMs = 85_000;
  let count = 0;
  const { client } = clientOf([], {
    fetch: async () => {
      count += 1;
      if (count === 1) await new Promise((resolve) => setTimeout(resolve, cutAfterMs));
      throw fault();
    },
  });
  const begun = Date.now();
  await settled(client.run(skill, {}));
  expect(Date.now() - begun).toBeGreaterThan(cutAfterMs + 120_000);
});

test('each retry is reported with its reason, its pause and the length of the outage', async () => {
  const retries: Retry[] = [];
  const busy = refusal(503, 'service_unavailable', { 'retry-after': '2' });
  const { client } = clientOf([fault(), busy, job('queued')], {
    onRetry: (retry) => retries.push(retry),
  });

  await settled(client.start(skill, {}));

  expect(retries.map(({ error }) => error.code)).toEqual(['unreachable', 'service_unavailable']);
  const [first, second] = retries as [Retry, Retry];
  expect(first.failingForMs).toBe(0);
  expect(second.failingForMs).toBeGreaterThanOrEqual(Math.floor(first.pauseMs));
  expect(second.pauseMs).toBeGreaterThanOrEqual(2_000);
});

test("a caller's own header makes no other operation safe to repeat", async () => {
  const { client, calls } = clientOf([]);
  const headers = { 'idempotency-key': 'k' };
  const created = client.memories.create('reader', { content: 'a', tag: 'fact' }, { headers });
  expect(await settled(created)).toMatchObject({ code: 'unreachable' });
  expect(calls).toHaveLength(1);
});

test('what might happen twice is not sent again after a fault', async () => {
  const { client, calls } = clientOf([fault(), refusal(503, 'service_unavailable')]);
  const create = () => settled(client.memories.create('reader', { content: 'a', tag: 'fact' }));

  expect(await create()).toMatchObject({ code: 'unreachable', status: 0 });
  expect(await create()).toMatchObject({ code: 'service_unavailable', status: 503 });
  expect(calls).toHaveLength(2);
});

test('after the last try the fault is the error of the call', async () => {
  const { client, calls } = clientOf([fault(), fault(), fault(), fault()], { retries: 2 });
  const failure = await settled(client.agents.get('reader'));
  expect(failure).toMatchObject({ code: 'unreachable', status: 0 });
  expect((failure as Error).message).toContain('connect ECONNREFUSED');
  expect(calls).toHaveLength(3);
});

test('a deletion whose answer was lost is done', async () => {
  const { client } = clientOf([fault(), refusal(404, 'not_found'), refusal(404, 'not_found')]);
  expect(await settled(client.agents.delete('reader'))).toBeUndefined();
  expect(await settled(client.agents.delete('reader'))).toMatchObject({ code: 'not_found' });
});

test('the deadline ends a call with its waits, and a signal ends it with its own reason', async () => {
  const limited = () => refusal(429, 'rate_limit_exceeded', { 'retry-after': '30' });
  const { client, calls } = clientOf([limited(), limited()]);

  const late = await settled(client.run(skill, {}, { deadlineMs: 1_000 }));
  expect(late).toMatchObject({ code: 'timeout', status: 0 });

  const reason = new Error('no longer needed');
  const leaving = new AbortController();
  const left = client.agents.list({}, { signal: leaving.signal }).then(
    () => null,
    (error: unknown) => error,
  );
  await vi.advanceTimersByTimeAsync(1_000);
  leaving.abort(reason);
  expect(await left).toBe(reason);
  expect(calls).toHaveLength(2);
});

test('the admin secret goes only to operations of administrators, the key only to the others', async () => {
  const { client, calls } = clientOf([
    Response.json([]),
    Response.json([]),
    new Response('a_metric 1\n'),
  ]);
  await client.apiKeys.list();
  await client.registry.list();
  expect(await client.operations.getMetrics()).toBe('a_metric 1\n');
  const sent = calls.map(({ headers }) => [headers.get('authorization'), headers.get('x-api-key')]);
  expect(sent).toEqual([
    ['Bearer admin', null],
    [null, 'key'],
    [null, null],
  ]);
});

test('a list gives a page when awaited, and all its entries when iterated', async () => {
  const page = (offset: number, ...ids: string[]) =>
    Response.json({ data: ids.map((id) => ({ id })), total: 3, limit: 2, offset });
  const { client, calls } = clientOf([page(0, 'a', 'b'), page(0, 'a', 'b'), page(2, 'c')]);

  expect(await client.agents.list({ limit: 2 })).toEqual({
    ...{ data: [{ id: 'a' }, { id: 'b' }], total: 3, nextOffset: 2 },
  });
  const ids: string[] = [];
  for await (const { id } of client.agents.list({ limit: 2 })) ids.push(id);

  expect(ids).toEqual(['a', 'b', 'c']);
  expect(calls.map(({ request }) => request)).toEqual([
    'GET /api/agents?limit=2',
    'GET /api/agents?limit=2',
    'GET /api/agents?limit=2&offset=2',
  ]);
});

test('a page that its bytes have cut is followed at the offset that the platform names', async () => {
  const list = (headers: Record<string, string>, ...ids: string[]) =>
    Response.json(
      ids.map((id) => ({ id })),
      { headers: { 'x-total-count': '2', ...headers } },
    );
  const { client, calls } = clientOf([list({ 'x-next-offset': '1' }, 'a'), list({}, 'b')]);
  const ids: string[] = [];
  for await (const { id } of client.conversations.list()) ids.push(id);
  expect(ids).toEqual(['a', 'b']);
  expect(calls[1]?.request).toBe('GET /api/conversations?offset=1');
});

test('a list without pages is one page', async () => {
  const { client } = clientOf([Response.json([{ id: 'a' }])]);
  expect(await client.scheduledJobs.list()).toEqual({
    ...{ data: [{ id: 'a' }], total: 1, nextOffset: null },
  });
});

test('an id is one segment of a path, and never empty', async () => {
  const { client, calls } = clientOf([Response.json({})]);
  await client.jobs.get('../a b?c');
  expect(calls[0]?.request).toBe('GET /api/jobs/..%2Fa%20b%3Fc');
  expect(() => client.jobs.get('')).toThrow(TypeError);
});

test('an answer that is not one of a platform is named, and a redirect is not followed', async () => {
  const page = new Response('<html>', { headers: { 'content-type': 'text/html' } });
  const moved = new Response(null, { status: 308, headers: { location: 'https://platform/' } });
  const { client } = clientOf([page, moved]);
  const code = 'unexpected_answer';
  await expect(client.jobs.get('j1')).rejects.toMatchObject({ code, status: 200 });
  await expect(client.jobs.get('j1')).rejects.toMatchObject({ code, status: 308 });
});

test('an address without a scheme is refused', () => {
  expect(() => createClient({ url: '127.0.0.1:3000' })).toThrow(/http:\/\//);
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

test('files are sent and read as their bytes, and a refusal for now is sent again', async () => {
  const file = { id: 'f1', name: 'a b.txt' };
  const { client, calls } = clientOf([
    refusal(429, 'rate_limit_exceeded', { 'retry-after': '1' }),
    Response.json(file, { status: 201 }),
    new Response(new Uint8Array([1, 2, 3])),
  ]);

  const kept = await settled(
    client.files.upload('hällo', { name: 'a b.txt', userId: 'ada', retentionDays: 62 }),
  );
  const read = await settled(client.files.content('f1'));

  expect(kept).toEqual(file);
  expect(read).toEqual(new Uint8Array([1, 2, 3]));
  expect(calls.map(({ request, body }) => [request, body])).toEqual([
    ['POST /api/files?name=a+b.txt&retention_days=62', 'hällo'],
    ['POST /api/files?name=a+b.txt&retention_days=62', 'hällo'],
    ['GET /api/files/f1/content', undefined],
  ]);
  expect(calls[1]?.headers.get('content-type')).toBe('application/octet-stream');
  expect(calls[1]?.headers.get('x-user-id')).toBe('ada');
});

test('a file that may have been kept is not sent again after a fault', async () => {
  const broken = () => refusal(503, 'service_unavailable');
  const { client, calls } = clientOf([fault(), broken()]);

  const failed = await settled(client.files.upload(new Blob(['x'])));
  const refused = await settled(client.files.upload(new Blob(['x'])));

  expect(failed).toMatchObject({ code: 'unreachable' });
  expect(refused).toMatchObject({ status: 503 });
  expect(calls).toHaveLength(2);
});

test('a file is sent again where the platform has no place for it now', async () => {
  const full = () => refusal(503, 'service_unavailable', { 'retry-after': '1' });
  const { client, calls } = clientOf([full(), full(), Response.json({ id: 'f1' })]);

  const kept = await settled(client.files.upload(new Blob(['x'])));

  expect(kept).toEqual({ id: 'f1' });
  expect(calls.map(({ body }) => body)).toEqual(['x', 'x', 'x']);
});

test('the bytes of a file are read again where they broke off', async () => {
  const breaking = () =>
    new Response(
      new ReadableStream({
        start: (bytes) => bytes.enqueue(new Uint8Array([1])),
        pull: (bytes) => bytes.error(new TypeError('terminated')),
      }),
    );
  const whole = new Response(new Uint8Array([1, 2]));
  const { client } = clientOf([breaking(), whole, ...Array.from({ length: 4 }, breaking)]);

  const read = await settled(client.files.content('f1'));
  const failed = await settled(client.files.content('f1'));

  expect(read).toEqual(new Uint8Array([1, 2]));
  expect(failed).toMatchObject({ name: 'SkillwrightError', code: 'unreachable' });
});
