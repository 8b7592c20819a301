import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { follow } from '../support/event-stream.ts';
import { expectRateLimitHeaders, expectRefusal } from '../support/expectations.ts';
import { manualClock } from '../support/manual-clock.ts';
import type { Answer, Platform } from '../support/platform.ts';
import { openRaw, sendRaw } from '../support/raw-http.ts';
import { acting, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

const second = 1_000;
const minute = 60 * second;

const clock = manualClock('2026-11-20T12:00:00.250Z');
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

/** `n` requests, one after the other. */
async function hits(tenant: Tenant, n: number): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let i = 0; i < n; i++) answers.push(await tenant.get('/api/agents'));
  return answers;
}

const served = (answers: readonly Answer[]) =>
  answers.filter(({ status }) => status === 200).length;
const header = (answer: Answer, name: string) => Number(answer.headers.get(name));

describe('each key has its own rate limit', () => {
  test('the default is 100 requests per minute', async () => {
    const tenant = await newTenant(platform, { rate_limit: undefined });

    const answers = await hits(tenant, 101);

    expect(answers.map(({ status }) => status)).toEqual([...Array(100).fill(200), 429]);
  });

  test('of 200 requests at once at limit 100 exactly 100 are not refused', async () => {
    const tenant = await newTenant(platform, { rate_limit: 100 });

    const answers = await Promise.all(Array.from({ length: 200 }, () => tenant.get('/api/agents')));

    expect(served(answers)).toBe(100);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(100);
    const remaining = answers
      .filter(({ status }) => status === 200)
      .map((answer) => header(answer, 'x-ratelimit-remaining'));
    expect(remaining.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i));
  });

  test('another key of the same organization is unaffected', async () => {
    const first = await newTenant(platform, { rate_limit: 1 });
    const second = await newTenant(platform, {
      rate_limit: 1,
      organization_id: first.organization,
    });
    expect(served(await hits(first, 3))).toBe(1);

    expect(served(await hits(second, 1))).toBe(1);
  });

  test('requests without a valid key count for no key', async () => {
    const tenant = await newTenant(platform, { rate_limit: 2 });
    for (let i = 0; i < 5; i++) await platform.request('GET', '/api/agents', { key: 'x' });

    expect(served(await hits(tenant, 2))).toBe(2);
  });
});

describe('the window is a sliding minute', () => {
  test('a burst on both sides of a minute gets only the expired requests', async () => {
    const tenant = await newTenant(platform, { rate_limit: 10 });
    expect(served(await hits(tenant, 4))).toBe(4);
    clock.advance(59 * second);
    expect(served(await hits(tenant, 10))).toBe(6);

    clock.advance(2 * second);

    expect(served(await hits(tenant, 10))).toBe(4);
    clock.advance(57 * second);
    expect(served(await hits(tenant, 1))).toBe(0);
    clock.advance(second);
    expect(served(await hits(tenant, 10))).toBe(6);
  });

  test('refused requests do not count: a client that keeps sending is served again on time', async () => {
    const tenant = await newTenant(platform, { rate_limit: 5 });
    await hits(tenant, 5);
    for (let s = 0; s < 59; s++) {
      clock.advance(second);
      expect(served(await hits(tenant, 3))).toBe(0);
    }

    clock.advance(second);

    expect(served(await hits(tenant, 8))).toBe(5);
  });

  test('a step of the wall clock neither frees nor freezes a key', async () => {
    const tenant = await newTenant(platform, { rate_limit: 2 });
    await hits(tenant, 2);
    const now = clock.now();

    clock.jumpTo(now + 10 * minute);
    const ahead = await hits(tenant, 1);
    clock.jumpTo(now - 10 * minute);
    const behind = await hits(tenant, 1);

    clock.jumpTo(now);
    expect([...ahead, ...behind].map(({ status }) => status)).toEqual([429, 429]);
  });
});

describe('every API response carries the three headers', () => {
  test('X-RateLimit-Limit is the maximum, Remaining the rest, Reset the time when the oldest leaves', async () => {
    const tenant = await newTenant(platform, { rate_limit: 3 });
    const oldestLeaves = Math.ceil((clock.now() + minute) / 1000);

    const [first] = await hits(tenant, 1);
    clock.advance(10 * second);
    const [second_] = await hits(tenant, 1);
    clock.advance(50 * second);
    const [third] = await hits(tenant, 1);

    const triple = (answer?: Answer) =>
      ['limit', 'remaining', 'reset'].map((name) => header(answer!, `x-ratelimit-${name}`));
    expect(triple(first)).toEqual([3, 2, oldestLeaves]);
    expect(triple(second_)).toEqual([3, 1, oldestLeaves]);
    expect(triple(third)).toEqual([3, 1, oldestLeaves + 10]);
  });

  test('with any status', async () => {
    const tenant = await newTenant(platform);
    const scoped = await newTenant(platform, { scopes: ['x'] });
    const paused = await newTenant(platform);
    await paused.put('/api/agents/default', { status: 'paused' });
    const limited = await newTenant(platform, { rate_limit: 1 });
    await hits(limited, 1);
    const text = { headers: { 'content-type': 'text/plain' }, body: 'x' };
    const answers: [number, Answer][] = [
      [200, await tenant.get('/api/skills')],
      [200, await tenant.run(play, acting())],
      [201, await tenant.post('/api/agents', {})],
      [202, await tenant.post(`/api/${play}`, acting())],
      [204, await tenant.delete('/api/agents/default')],
      [400, await tenant.post('/api/agents', '{')],
      [400, await tenant.get('/api/jobs?limit=0')],
      [400, await tenant.get('/api/jobs?agent_id=%ff')],
      [400, await tenant.get('/api/agents/%zz')],
      [400, await tenant.get('/api/agents/%00')],
      [403, await scoped.post(`/api/${play}`, acting())],
      [404, await tenant.get('/api/nowhere')],
      [404, await tenant.get('/api/agents/unknown')],
      [404, await tenant.get(`/api/agents/${'x'.repeat(5_000)}`)],
      [404, await tenant.post('/api/no/v1.0/skill', {})],
      [405, await tenant.delete('/api/jobs')],
      [405, await tenant.send('OPTIONS', '/api/jobs')],
      [409, await paused.post('/api/agents', { id: 'default' })],
      [413, await tenant.post('/api/agents', ' '.repeat(1_048_577))],
      [415, await tenant.send('POST', '/api/agents', text)],
      [422, await paused.post(`/api/${play}`, acting())],
      [429, await limited.get('/api/agents')],
    ];

    for (const [status, answer] of answers) {
      expect(answer.status, answer.text).toBe(status);
      expectRateLimitHeaders(answer);
    }
  });

  test('the event stream of a job among them', async () => {
    const tenant = await newTenant(platform);
    const { body } = await tenant.run(play, acting());

    const stream = await follow(`${platform.url}/api/jobs/${body.job_id}/events`, {
      'x-api-key': tenant.key,
    });

    expectRateLimitHeaders({ ...body, headers: stream.headers });
    await stream.ended;
  });

  test('methods that fetch does not send among them', async () => {
    const { key } = await newTenant(platform);

    for (const method of ['TRACE', 'PROPFIND']) {
      const request = `${method} /api/jobs HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\n\r\n`;
      const answer = await sendRaw(platform.url, request);

      expectRefusal(answer, 405, 'method_not_allowed');
      expectRateLimitHeaders(answer);
    }
  });
});

describe('when the limit is reached', () => {
  test('requests get 429 with retry_after, the maximum in the message, and Remaining 0', async () => {
    const tenant = await newTenant(platform, { rate_limit: 7 });
    await hits(tenant, 7);

    const [refused] = await hits(tenant, 1);

    expectRefusal(refused!, 429, 'rate_limit_exceeded');
    expect(refused?.body.message).toContain('7');
    expect(refused?.body.retry_after).toBe(60);
    expect(refused?.headers.get('retry-after')).toBe('60');
    expect(refused?.headers.get('x-ratelimit-limit')).toBe('7');
    expect(refused?.headers.get('x-ratelimit-remaining')).toBe('0');
    expect(header(refused!, 'x-ratelimit-reset')).toBeGreaterThanOrEqual(clock.now() / 1000);
  });

  test('waiting retry_after succeeds, and a second less does not', async () => {
    const tenant = await newTenant(platform, { rate_limit: 2 });
    await hits(tenant, 1);
    clock.advance(12_345);
    await hits(tenant, 1);
    clock.advance(3_210);
    const [refused] = await hits(tenant, 1);
    const { retry_after } = refused?.body ?? {};

    clock.advance((retry_after - 1) * second);
    const [early] = await hits(tenant, 1);
    clock.advance(second);
    const [late] = await hits(tenant, 1);

    expect(retry_after).toBe(45);
    expect(early?.status).toBe(429);
    expect(early?.body.retry_after).toBe(1);
    expect(late?.status).toBe(200);
  });

  test('a refused execution makes no job', async () => {
    const tenant = await newTenant(platform, { rate_limit: 1 });
    await hits(tenant, 1);

    expectRefusal(await tenant.post(`/api/${play}`, acting()), 429, 'rate_limit_exceeded');

    clock.advance(minute);
    expect((await tenant.get('/api/jobs')).body.total).toBe(0);
  });

  test('of pipelined requests as many are served', async () => {
    const { key } = await newTenant(platform, { rate_limit: 3 });
    const connection = openRaw(platform.url);

    connection.send(`GET /api/agents HTTP/1.1\r\nHost: x\r\nx-api-key: ${key}\r\n\r\n`.repeat(5));

    const answers = await connection.answers(5);
    connection.destroy();
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 429, 429]);
  });
});

test('/admin, /health and /metrics have no limit of a key', async () => {
  for (const answer of [
    await platform.admin('GET', '/admin/api-keys'),
    await platform.request('GET', '/health'),
    await platform.request('GET', '/metrics'),
  ]) {
    expect(answer.status).toBe(200);
    expect(answer.headers.get('x-ratelimit-limit')).toBeNull();
  }
});
