/** `x-run-at`, `x-delay-seconds`, `x-expires-in` and `PATCH /api/jobs/:jobId` (docs/decisions/jobs.md). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  // So that jobs can be held in the queue.
  platform = await startStaged({ environment: { WORKER_CONCURRENCY: '2' } });
});
afterAll(() => platform.stop());

const echo = 'util/v1.0/echo';
const randomId = '0198c0de-0000-7000-8000-000000000000';
const hour = 60 * 60 * 1_000;
const ahead = (ms: number) => new Date(Date.now() + ms).toISOString();

describe('a job that begins later', () => {
  test.each([
    ['x-run-at', () => ahead(hour)],
    ['x-delay-seconds', () => '3600'],
  ])('by %s is queued, shown with run_at, listed and cancellable', async (name, value) => {
    const tenant = await newTenant(platform);
    const before = Date.now();
    const jobId = await tenant.start(echo, { text: 'later' }, { [name]: value() });

    const { body: job } = await tenant.get(`/api/jobs/${jobId}`);
    expect(job).toMatchObject({ status: 'queued', started_at: null, expires_at: null });
    expect(Date.parse(job.run_at)).toBeGreaterThanOrEqual(before + hour - 1);
    const list = await tenant.get('/api/jobs?status=queued&include=timing');
    expect(list.body.data).toEqual([
      expect.objectContaining({ job_id: jobId, run_at: job.run_at, expires_at: null }),
    ]);
    expect((await tenant.post(`/api/jobs/${jobId}/cancel`)).status).toBe(200);
  });

  test('begins at its moment', async () => {
    const tenant = await newTenant(platform);

    const { status, body } = await tenant.run(echo, { text: 'soon' }, { 'x-delay-seconds': '1' });

    expect(status).toBe(200);
    expect(Date.parse(body.started_at)).toBeGreaterThanOrEqual(Date.parse(body.run_at));
    expect(Date.parse(body.run_at)).toBe(Date.parse(body.created_at) + 1_000);
  });

  test.each([
    ['x-run-at', '2020-01-01T00:00:00Z', 'must lie in the future'],
    ['x-run-at', '9999-12-31T23:59:59Z', 'must lie within 365 days'],
    ['x-run-at', ahead(366 * 24 * hour), 'must lie within 365 days'],
    ['x-run-at', '2030-01-01T00:00:00', 'must be an ISO 8601 timestamp with a time zone'],
    ['x-run-at', '2030-02-30T00:00:00Z', 'must be an ISO 8601 timestamp with a time zone'],
    ['x-run-at', 'tomorrow', 'must be an ISO 8601 timestamp with a time zone'],
    ['x-run-at', '2'.repeat(4_000), 'must be an ISO 8601 timestamp with a time zone'],
    ['x-delay-seconds', '-1', 'must be an integer from 0 to 31536000'],
    ['x-delay-seconds', '1.5', 'must be an integer from 0 to 31536000'],
    ['x-delay-seconds', '1e3', 'must be an integer from 0 to 31536000'],
    ['x-delay-seconds', '31536001', 'must be an integer from 0 to 31536000'],
    ['x-delay-seconds', '9'.repeat(4_000), 'must be an integer from 0 to 31536000'],
    ['x-expires-in', '0', 'must be an integer from 1 to 31536000'],
    ['x-expires-in', '31536001', 'must be an integer from 1 to 31536000'],
    ['x-expires-in', 'soon', 'must be an integer from 1 to 31536000'],
  ])('%s: %.40s is 400', async (name, value, issue) => {
    const tenant = await newTenant(platform);

    const answer = await tenant.post(`/api/${echo}`, { text: 'x' }, { [name]: value });

    expectInvalid(answer, name);
    expect(answer.body.details).toEqual([{ field: name, issue }]);
    expect((await tenant.get('/api/jobs')).body.total).toBe(0);
  });

  test('both headers together, and an expiry before the beginning, are 400', async () => {
    const tenant = await newTenant(platform);
    const both = { 'x-run-at': ahead(hour), 'x-delay-seconds': '10' };
    expectInvalid(await tenant.post(`/api/${echo}`, {}, both), 'x-delay-seconds');
    const never = { 'x-delay-seconds': '60', 'x-expires-in': '60' };
    expectInvalid(await tenant.post(`/api/${echo}`, { text: 'x' }, never), 'x-expires-in');
  });

  test('an Idempotency-Key stands for the same times, too', async () => {
    const tenant = await newTenant(platform);
    const send = (headers: Record<string, string>) =>
      tenant.post(`/api/${echo}`, { text: 'x' }, { 'idempotency-key': 'one', ...headers });
    const first = await send({ 'x-delay-seconds': '600', 'x-expires-in': '900' });

    const repeated = await send({ 'x-delay-seconds': '600', 'x-expires-in': '900' });
    expect(repeated.body.job_id).toBe(first.body.job_id);
    for (const other of [
      {},
      { 'x-delay-seconds': '600' },
      { 'x-delay-seconds': '601', 'x-expires-in': '900' },
    ]) {
      expectRefusal(await send(other), 422, 'idempotency_key_reused');
    }
  });
});

describe('a job that expires', () => {
  test('ends as cancelled with the code expired', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    for (let i = 0; i < 4; i += 1) await tenant.start(play, acting({ until: end.path }));
    const jobId = await tenant.start(echo, { text: 'x' }, { 'x-expires-in': '1' });

    const { body } = await tenant.jobIn(jobId, 'cancelled', 'completed');

    expect(body).toMatchObject({
      status: 'cancelled',
      error: { code: 'expired' },
      started_at: null,
      attempt: 0,
    });
    expect(Date.parse(body.expires_at)).toBe(Date.parse(body.created_at) + 1_000);
    expect((await tenant.post(`/api/jobs/${jobId}/retry`)).body.status).toBe('queued');
  });
});

describe('PATCH /api/jobs/:jobId', () => {
  test('moves the moment of a queued job', async () => {
    const tenant = await newTenant(platform);
    const jobId = await tenant.start(echo, { text: 'x' }, { 'x-delay-seconds': '3600' });
    const change = (body: unknown) => tenant.send('PATCH', `/api/jobs/${jobId}`, { body });
    const moment = ahead(2 * hour);

    const moved = await change({ run_at: moment });
    expect(moved).toMatchObject({ status: 200, body: { job_id: jobId, run_at: moment } });
    expect((await change({ run_at: null })).status).toBe(200);

    expect((await tenant.jobIn(jobId, 'completed')).body.output).toEqual({ text: 'x' });
  });

  test('changes the priority of a queued job, alone or together with its moment', async () => {
    const tenant = await newTenant(platform);
    const jobId = await tenant.start(echo, { text: 'x' }, { 'x-delay-seconds': '3600' });
    const change = (body: unknown) => tenant.send('PATCH', `/api/jobs/${jobId}`, { body });
    const { run_at } = (await tenant.get(`/api/jobs/${jobId}`)).body;

    const raised = await change({ priority: 'high' });
    expect(raised).toMatchObject({ status: 200, body: { priority: 'high', run_at } });
    const moment = ahead(2 * hour);
    const both = await change({ priority: 'low', run_at: moment });
    expect(both).toMatchObject({ status: 200, body: { priority: 'low', run_at: moment } });
    expect((await change({ run_at: null })).body.priority).toBe('low');
    await tenant.jobIn(jobId, 'completed');

    expectRefusal(await change({ priority: 'high' }), 409, 'conflict');
  });

  test.each([
    [{}, 'run_at'],
    [{ priority: 'urgent' }, 'priority'],
    [{ priority: null }, 'priority'],
    [{ run_at: 5 }, 'run_at'],
    [{ run_at: '2030-01-01' }, 'run_at'],
    [{ run_at: '2020-01-01T00:00:00Z' }, 'run_at'],
    [{ run_at: '9999-01-01T00:00:00Z' }, 'run_at'],
    [{ run_at: null, status: 'active' }, 'status'],
  ])('%j is 400', async (body, field) => {
    const tenant = await newTenant(platform);
    const jobId = await tenant.start(echo, { text: 'x' }, { 'x-delay-seconds': '3600' });

    expectInvalid(await tenant.send('PATCH', `/api/jobs/${jobId}`, { body }), field);
  });

  test('without a key is 401, for an unknown or another’s job 404, without the scope 403', async () => {
    const tenant = await newTenant(platform);
    const { organization } = tenant;
    const jobId = await tenant.start(echo, { text: 'x' }, { 'x-delay-seconds': '3600' });
    const body = { run_at: null };
    const path = `/api/jobs/${jobId}`;

    expectRefusal(await platform.request('PATCH', path, { body }), 401, 'authentication_required');
    expectRefusal(
      await (await newTenant(platform)).send('PATCH', path, { body }),
      404,
      'not_found',
    );
    expectRefusal(await tenant.send('PATCH', `/api/jobs/${randomId}`, { body }), 404, 'not_found');
    const narrow = await newTenant(platform, { organization_id: organization, scopes: ['text'] });
    expectRefusal(await narrow.send('PATCH', path, { body }), 403, 'insufficient_scope');
  });

  test('of a job that has begun or ended is 409', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const active = await tenant.start(play, acting({ until: end.path }));
    await tenant.jobIn(active, 'active');
    const ended = (await tenant.run(echo, { text: 'x' })).body.job_id;

    for (const id of [active, ended]) {
      const answer = await tenant.send('PATCH', `/api/jobs/${id}`, { body: { run_at: null } });
      expectRefusal(answer, 409, 'conflict');
    }
  });
});
