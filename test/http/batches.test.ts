/** `/api/batches` (docs/decisions/jobs.md). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { acting, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const skill = 'util/v1.0/echo';
const item = (text: string, more = {}) => ({ skill, input: { text }, ...more });
const later = { delay_seconds: 3_600 };

const completed = (tenant: Tenant, id: string) =>
  waitFor(
    async () => {
      const { body } = await tenant.get(`/api/batches/${id}`);
      return body.completed_at === null ? null : body;
    },
    { describe: 'the batch is completed' },
  );

describe('POST /api/batches', () => {
  test('an item has a priority', async () => {
    const tenant = await newTenant(platform);
    const items = [
      item('a', { ...later, priority: 'high' }),
      item('b', later),
      item('c', { priority: 'urgent' }),
    ];

    const { body } = await tenant.post('/api/batches', { items });

    expect(body).toMatchObject({ accepted: 2, refused: 1 });
    expect(body.items[2]).toMatchObject({ error: 'validation_error' });
    const [high, usual] = await Promise.all(
      [0, 1].map((i) => tenant.get(`/api/jobs/${body.items[i].job_id}`)),
    );
    expect([high?.body.priority, usual?.body.priority]).toEqual(['high', 'normal']);
  });

  test('accepts a thousand items in their order, and completes', async () => {
    const tenant = await newTenant(platform);
    const items = Array.from({ length: 1_000 }, (_, i) => item(`${i}`));

    const answer = await tenant.post('/api/batches', { items });

    expect(answer).toMatchObject({ status: 202, body: { accepted: 1_000, refused: 0 } });
    expect(answer.headers.get('location')).toBe(`/api/batches/${answer.body.id}`);
    const done = await completed(tenant, answer.body.id);
    expect(done).toMatchObject({ counts: { completed: 1_000, failed: 0 }, progress: 1 });
    const { job_id } = answer.body.items[417];
    const { body: job } = await tenant.get(`/api/jobs/${job_id}`);
    expect(job).toMatchObject({ output: { text: '417' }, batch_id: answer.body.id });
    const listed = await tenant.get(`/api/jobs?batch_id=${answer.body.id}&limit=1`);
    expect(listed.body.total).toBe(1_000);
  });

  test('answers by item: a bad one in the middle does not keep the others', async () => {
    const tenant = await newTenant(platform);
    const bad = [
      { skill },
      { skill: 'util/v1.0/nothing', input: {} },
      item('x', { agent_id: 'nobody' }),
      { skill, input: {} },
      item('x', { run_at: '2020-01-01T00:00:00Z' }),
      item('x', { priority: 5, surprise: true }),
      'no item',
    ];
    const items = [item('first', later), ...bad, item('last', later)];

    const { status, body } = await tenant.post('/api/batches', { items });

    expect(status).toBe(202);
    expect(body.items.map(({ error }: { error?: string }) => error ?? 'accepted')).toEqual([
      ...['accepted', 'validation_error', 'skill_not_found', 'not_found', 'validation_error'],
      ...['validation_error', 'validation_error', 'validation_error', 'accepted'],
    ]);
    expect(body).toMatchObject({ accepted: 2, refused: 7 });
    expect((await tenant.get('/api/jobs')).body.total).toBe(2);
  });

  test('atomic: one bad item refuses all', async () => {
    const tenant = await newTenant(platform);
    const items = [item('first'), { skill, input: {} }, item('last')];

    const answer = await tenant.post('/api/batches', { items, atomic: true });

    expectInvalid(answer, 'items.1.input.text');
    expect((await tenant.get('/api/jobs')).body.total).toBe(0);
    expect((await tenant.get('/api/batches')).body.total).toBe(0);
  });

  test('each item needs the scopes of its skill', async () => {
    const tenant = await newTenant(platform, { scopes: ['util'] });

    const { body } = await tenant.post('/api/batches', {
      items: [item('x', later), { skill: play, input: acting() }],
    });

    expect(body.items[1].error).toBe('insufficient_scope');
  });

  test.each([
    [{}, 'items'],
    [{ items: [] }, 'items'],
    [{ items: Array.from({ length: 1_001 }, () => item('x')) }, 'items'],
    [{ items: [item('x')], surprise: 1 }, 'surprise'],
    [{ items: [item('x')], atomic: 'yes' }, 'atomic'],
  ])('%.60j is 400', async (body, field) => {
    expectInvalid(await (await newTenant(platform)).post('/api/batches', body), field);
  });

  test('may have 8 MiB, and 20 MiB are 413', async () => {
    const tenant = await newTenant(platform);
    const large = (bytes: number) => ({
      items: Array.from({ length: 20 }, () => item('x'.repeat(bytes / 20 - 100), later)),
    });

    expect((await tenant.post('/api/batches', large(7 << 20))).status).toBe(202);
    expectRefusal(await tenant.post('/api/batches', large(20 << 20)), 413, 'payload_too_large');
  });

  test('without a key is 401', async () => {
    const body = { items: [item('x')] };
    const answer = await platform.request('POST', '/api/batches', { body });
    expectRefusal(answer, 401, 'authentication_required');
  });

  test('counts its items against the limit of the key, together or not at all', async () => {
    const tenant = await newTenant(platform, { rate_limit: 20 });
    const batch = (n: number) => ({ items: Array.from({ length: n }, () => item('x', later)) });

    const first = await tenant.post('/api/batches', batch(12));
    expect(first.headers.get('x-ratelimit-remaining')).toBe('8');
    expectRefusal(await tenant.post('/api/batches', batch(9)), 429, 'rate_limit_exceeded');
    expectInvalid(await tenant.post('/api/batches', batch(21)), 'items');

    expect((await tenant.get('/api/jobs')).body.total).toBe(12);
  });

  test('that is refused for the limit uses up nothing of it', async () => {
    const tenant = await newTenant(platform, { rate_limit: 20 });
    const batch = (n: number) => ({ items: Array.from({ length: n }, () => item('x', later)) });
    const full = await newTenant(platform, { rate_limit: 20 });
    const all = await full.post('/api/batches', batch(20));
    expect(all.status).toBe(202);
    expect(all.headers.get('x-ratelimit-remaining')).toBe('0');
    await tenant.post('/api/batches', batch(1));

    for (let i = 0; i < 20; i++) {
      const refused = await tenant.post('/api/batches', batch(20));
      expectRefusal(refused, 429, 'rate_limit_exceeded');
      expect(refused.headers.get('x-ratelimit-remaining')).toBe('19');
    }

    expect((await tenant.post('/api/batches', batch(19))).status).toBe(202);
  });

  test.each([
    ['x-run-at', '2030-01-01T00:00:00Z'],
    ['x-delay-seconds', '5'],
    ['x-expires-in', '5'],
    ['x-priority', 'high'],
    ['x-agent-id', 'default'],
    ['x-user-id', 'someone'],
    ['x-conversation-id', '0198c0de-0000-7000-8000-000000000000'],
  ])('with %s, which only its items can have, is 400', async (name, value) => {
    const tenant = await newTenant(platform);
    const answer = await tenant.post('/api/batches', { items: [item('x')] }, { [name]: value });
    expectInvalid(answer, name);
  });

  test('refuses an item whose input a request may not have', async () => {
    const tenant = await newTenant(platform);
    const items = [item('x'.repeat(1 << 20), later), item('x'.repeat((1 << 20) - 100), later)];

    const { body } = await tenant.post('/api/batches', { items });

    expect(body.items[0].error).toBe('payload_too_large');
    expect(body).toMatchObject({ accepted: 1, refused: 1 });
    const atomic = await tenant.post('/api/batches', { items, atomic: true });
    expectRefusal(atomic, 413, 'payload_too_large');
  });

  test('says what is wrong with an invalid item', async () => {
    const tenant = await newTenant(platform);
    const items = [item('x', later), { skill, input: {} }, 'no item'];

    const { body } = await tenant.post('/api/batches', { items });

    expect(body.items[1].details).toMatchObject([{ field: 'items.1.input.text' }]);
    expect(body.items[2].details).toMatchObject([{ field: 'items.2' }]);
  });

  test('twice with one Idempotency-Key is one batch; with other items it is 422', async () => {
    const tenant = await newTenant(platform);
    const key = { 'idempotency-key': 'monday' };
    const body = { items: [item('x', later), { skill, input: {} }] };

    const both = await Promise.all([1, 2].map(() => tenant.post('/api/batches', body, key)));
    const again = await tenant.post('/api/batches', body, key);

    expect(new Set(both.map((answer) => answer.body.id))).toEqual(new Set([again.body.id]));
    expect(again.body.items).toEqual(both[0]?.body.items);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect((await tenant.get('/api/jobs')).body.total).toBe(1);
    const other = await tenant.post('/api/batches', { items: [item('y')] }, key);
    expectRefusal(other, 422, 'idempotency_key_reused');
  });
});

describe('a batch', () => {
  test('is listed, counted, cancelled and repeated', async () => {
    const tenant = await newTenant(platform);
    const failing = acting({ fail: { message: 'no', retryable: false } });
    const items = [item('x', later), { skill: play, input: failing }];
    const { body: batch } = await tenant.post('/api/batches', { items });
    await tenant.jobIn(batch.items[1].job_id, 'failed');

    const { items: _answers, ...summary } = batch;
    expect((await tenant.get('/api/batches')).body.data).toEqual([summary]);
    const one = await tenant.get(`/api/batches/${batch.id}`);
    expect(one.body).toMatchObject({ counts: { queued: 1, failed: 1 }, progress: 0.5 });
    const retried = await tenant.post(`/api/batches/${batch.id}/retry`);
    expect(retried.body).toMatchObject({ retried: 1, done: true });
    const cancelled = await tenant.post(`/api/batches/${batch.id}/cancel`);
    expect(cancelled.body).toMatchObject({ cancelled: 1, done: true });

    const done = await completed(tenant, batch.id);
    expect(done.counts).toMatchObject({ cancelled: 1, failed: 1, queued: 0 });
  });

  test('is repeated as often as the limit of the key allows', async () => {
    const tenant = await newTenant(platform);
    const { organization: organization_id } = tenant;
    const limited = await newTenant(platform, { organization_id, rate_limit: 5 });
    const failing = acting({ fail: { message: 'no', retryable: false } });
    const items = Array.from({ length: 6 }, () => ({ skill: play, input: failing }));
    const { body: batch } = await tenant.post('/api/batches', { items });
    await completed(tenant, batch.id);

    const retried = await limited.post(`/api/batches/${batch.id}/retry`);

    expect(retried.body).toMatchObject({ retried: 5, remaining: 1, done: false });
    expect(retried.headers.get('x-ratelimit-remaining')).toBe('0');
  });

  test.each([
    ['GET', ''],
    ['POST', '/cancel'],
    ['POST', '/retry'],
  ])('of another organization does not exist: %s …%s', async (method, path) => {
    const tenant = await newTenant(platform);
    const { body } = await tenant.post('/api/batches', { items: [item('x', later)] });
    const stranger = await newTenant(platform);

    for (const id of [body.id, '0198c0de-0000-7000-8000-000000000000', 'x']) {
      const answer = await stranger.send(method, `/api/batches/${id}${path}`);
      expectRefusal(answer, 404, 'not_found');
    }
    expect((await stranger.get('/api/batches')).body.total).toBe(0);
  });
});
