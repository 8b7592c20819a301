/** `x-job-key` (docs/decisions/jobs.md), and the keys of triggers (docs/decisions/triggers.md). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Answer, Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const echo = 'util/v1.0/echo';
const later = { 'x-delay-seconds': '3600' };
const send = (tenant: Tenant, text: string, headers: Record<string, string>) =>
  tenant.post(`/api/${echo}`, { text }, headers);
const result = 'x-job-key-result';

describe('x-job-key', () => {
  test('replace: the latest input runs, and the earlier job names its job', async () => {
    const tenant = await newTenant(platform);
    const first = await send(tenant, 'one', { 'x-job-key': 'page 7', ...later });
    expect(first.headers.get(result)).toBeNull();

    const second = await send(tenant, 'two', { 'x-job-key': 'page 7', prefer: 'wait=30' });

    expect(second).toMatchObject({ status: 200, body: { output: { text: 'two' } } });
    expect(second.headers.get(result)).toBe('replaced');
    const { body } = await tenant.get(`/api/jobs/${first.body.job_id}`);
    expect(body).toMatchObject({
      ...{ status: 'cancelled', job_key: 'page 7', replaced_by: second.body.job_id },
      error: { code: 'replaced' },
    });
    const { text } = await tenant.get(`/api/jobs/${first.body.job_id}/events`);
    expect(text).toContain('"code":"replaced"');
  });

  test('skip: the later request is answered with the job that runs', async () => {
    const tenant = await newTenant(platform);
    const end = gate();
    const keyed = { 'x-job-key': 'one', 'x-job-key-mode': 'skip' };
    const job = await tenant.start(play, acting({ until: end.path }), keyed);
    await tenant.jobIn(job, 'active');

    const again = await tenant.post(`/api/${play}`, acting({ log: 'two' }), keyed);

    expect(again).toMatchObject({ status: 202, body: { job_id: job, status: 'active' } });
    expect(again.headers.get(result)).toBe('skipped');
    expect(again.headers.get('location')).toBe(`/api/jobs/${job}`);
    end.open();
    await tenant.jobIn(job, 'completed');
    expect((await tenant.get('/api/jobs')).body.total).toBe(1);
  });

  test('skip: is 409 conflict beside the job of another user', async () => {
    const tenant = await newTenant(platform);
    const keyed = { 'x-job-key': 'day', 'x-job-key-mode': 'skip', ...later };
    await send(tenant, 'of ada', { ...keyed, 'x-user-id': 'ada' });

    const refused = await send(tenant, 'of bob', { ...keyed, 'x-user-id': 'bob' });

    expectRefusal(refused, 409, 'conflict');
    expect((await tenant.get('/api/jobs')).body.total).toBe(1);
  });

  test('debounce: one run with the last input', async () => {
    const tenant = await newTenant(platform);
    const keyed = { 'x-job-key': 'k', 'x-job-key-mode': 'debounce', 'x-debounce-seconds': '1' };
    const sent: Answer[] = [];
    for (const text of ['one', 'two', 'three']) sent.push(await send(tenant, text, keyed));

    expect(sent.map(({ headers }) => headers.get(result))).toEqual([
      ...[null, 'debounced', 'debounced'],
    ]);
    expect(new Set(sent.map(({ body }) => body.job_id)).size).toBe(1);
    const job = await tenant.jobIn(sent[0]?.body.job_id, 'completed');
    expect(job.body).toMatchObject({ output: { text: 'three' }, input: { text: 'three' } });
    expect((await tenant.get('/api/jobs')).body.total).toBe(1);
  });

  const calm = { 'x-job-key': 'k', 'x-job-key-mode': 'debounce' };
  test.each<[string, string | undefined, Record<string, string>]>([
    ['x-job-key', '', {}],
    ['x-job-key', 'x'.repeat(256), {}],
    ['x-job-key', 'caf\u00e9', {}],
    ['x-job-key', 'a\tb', {}],
    ['x-job-key-mode', 'latest', { 'x-job-key': 'k' }],
    ['x-job-key', undefined, { 'x-job-key-mode': 'skip' }],
    ['x-debounce-seconds', undefined, calm],
    ['x-debounce-seconds', '5', { 'x-job-key': 'k' }],
    ['x-debounce-max-seconds', '5', { 'x-job-key': 'k', 'x-job-key-mode': 'skip' }],
    ['x-debounce-seconds', '0', calm],
    ['x-debounce-seconds', '-1', calm],
    ['x-debounce-seconds', '1.5', calm],
    ['x-debounce-seconds', '86401', calm],
    ['x-debounce-seconds', '9'.repeat(4_000), calm],
    ['x-debounce-max-seconds', '4', { ...calm, 'x-debounce-seconds': '5' }],
    ['x-debounce-max-seconds', '604801', { ...calm, 'x-debounce-seconds': '5' }],
  ])('%s: %.40s is 400', async (name, value, more) => {
    const tenant = await newTenant(platform);
    const headers = { ...more, ...(value === undefined ? {} : { [name]: value }) };

    expectInvalid(await send(tenant, 'x', headers), name);
    expect((await tenant.get('/api/jobs')).body.total).toBe(0);
  });

  test('debounce goes neither with a moment nor with a shorter expiry', async () => {
    const tenant = await newTenant(platform);
    const calm = { 'x-job-key': 'k', 'x-job-key-mode': 'debounce', 'x-debounce-seconds': '60' };
    expectInvalid(await send(tenant, 'x', { ...calm, ...later }), 'x-run-at');
    expectInvalid(await send(tenant, 'x', { ...calm, 'x-expires-in': '60' }), 'x-expires-in');
  });

  test('an Idempotency-Key stands for the same key, too', async () => {
    const tenant = await newTenant(platform);
    const keyed = (headers: Record<string, string>) =>
      send(tenant, 'x', { 'idempotency-key': 'one', ...later, ...headers });
    const first = await keyed({ 'x-job-key': 'k' });
    const repeated = await keyed({ 'x-job-key': 'k' });

    expect(repeated.body.job_id).toBe(first.body.job_id);
    expect(repeated.headers.get('idempotent-replayed')).toBe('true');
    for (const other of [
      {},
      { 'x-job-key': 'l' },
      { 'x-job-key': 'k', 'x-job-key-mode': 'skip' },
    ]) {
      expectRefusal(await keyed(other as Record<string, string>), 422, 'idempotency_key_reused');
    }
  });
});

describe('the job_key of a trigger', () => {
  const trigger = (tenant: Tenant, jobKey: unknown) =>
    tenant.post('/api/agent-triggers', {
      ...{ agent_id: 'default', name: 'x', skill_category: 'util', skill_name: 'echo' },
      ...{ mapping: '{"text": body.text}', job_key: jobKey },
    });

  test('comes from the body of each call', async () => {
    const tenant = await newTenant(platform);
    const settings = { mapping: 'body.page', mode: 'debounce', debounce_seconds: 3_600 };
    const { body: created } = await trigger(tenant, settings);
    expect(created.job_key).toEqual(settings);
    const call = (body: unknown) =>
      platform.request('POST', `/api/webhooks/agent/${created.token}`, { body });

    const first = await call({ page: 7, text: 'one' });
    const second = await call({ page: 7, text: 'two' });
    const other = await call({ page: 8, text: 'three' });

    expect(second.body.job_id).toBe(first.body.job_id);
    expect(second.headers.get(result)).toBe('debounced');
    expect(other.body.job_id).not.toBe(first.body.job_id);
    const { body: job } = await tenant.get(`/api/jobs/${first.body.job_id}`);
    expect(job).toMatchObject({ job_key: '7', input: { text: 'two' }, status: 'queued' });
    for (const page of [undefined, '', 'x'.repeat(256), ['a'], {}]) {
      expectInvalid(await call({ page, text: 'x' }), 'job_key.mapping');
    }
    const changed = await tenant.put(`/api/agent-triggers/${created.id}`, { job_key: null });
    expect(changed.body.job_key).toBeNull();
    expect((await call({ page: 7, text: 'x' })).body.job_id).not.toBe(first.body.job_id);
  });

  test('answers with the status of the job that it keeps', async () => {
    const tenant = await newTenant(platform);
    const { body: created } = await tenant.post('/api/agent-triggers', {
      ...{ agent_id: 'default', name: 'x', skill_category: 'staged', skill_name: 'play' },
      ...{ mapping: 'body.input', job_key: { mapping: 'body.page', mode: 'skip' } },
    });
    const end = gate();
    const call = () =>
      platform.request('POST', `/api/webhooks/agent/${created.token}`, {
        body: { page: 7, input: acting({ until: end.path }) },
      });
    const first = await call();
    expect(first.body.status).toBe('queued');
    await tenant.jobIn(first.body.job_id, 'active');

    const second = await call();

    expect(second.headers.get(result)).toBe('skipped');
    expect(second.body).toMatchObject({ job_id: first.body.job_id, status: 'active' });
    end.open();
  });

  test('is refused where its parts do not fit, or its mapping cannot be read', async () => {
    const tenant = await newTenant(platform);
    for (const [settings, field] of [
      [{ mapping: 'body.' }, 'job_key.mapping'],
      [{ mapping: 'body.id', mode: 'debounce' }, 'job_key.debounce_seconds'],
      [{ mapping: 'body.id', debounce_seconds: 5 }, 'job_key.debounce_seconds'],
      [{ mapping: 'body.id', mode: 'latest' }, 'job_key.mode'],
    ] as const) {
      expectInvalid(await trigger(tenant, settings), field);
    }
  });
});
