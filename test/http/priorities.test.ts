/** `priority` of agents, schedules and triggers, and what wins over it (docs/decisions/jobs.md). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { acting, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const echo = 'util/v1.0/echo';
const ofEcho = { skill_category: 'util', skill_name: 'echo' };
const schedule = { ...ofEcho, cron_expression: '0 9 * * *', input: { text: 'x' } };

/** A tenant with the agent `late`, whose jobs have the priority low. */
async function newLateTenant() {
  const tenant = await newTenant(platform);
  const made = await tenant.post('/api/agents', { id: 'late', priority: 'low' });
  expect(made.body).toMatchObject({ id: 'late', priority: 'low' });
  return tenant;
}

const priorityOf = async (tenant: Tenant, id: string) =>
  (await tenant.get(`/api/jobs/${id}`)).body.priority;

async function newTrigger(tenant: Tenant, fields: Record<string, unknown>) {
  const { body } = await tenant.post('/api/agent-triggers', {
    ...ofEcho,
    ...{ agent_id: 'late', name: 'Pushes', ...fields },
  });
  const call = async () => {
    const answer = await platform.request('POST', new URL(body.url, 'http://x').pathname, {
      body: { text: 'x' },
    });
    return priorityOf(tenant, answer.body.job_id);
  };
  return { at: `/api/agent-triggers/${body.id}`, shown: body, call };
}

describe('the priority of an agent', () => {
  test('is that of its jobs, unless the request or the item of a batch has one', async () => {
    const tenant = await newLateTenant();
    const late = { 'x-agent-id': 'late' };

    const own = await tenant.start(echo, { text: 'x' }, late);
    const high = await tenant.start(echo, { text: 'x' }, { ...late, 'x-priority': 'high' });
    const item = { skill: echo, input: { text: 'x' }, agent_id: 'late' };
    const batch = await tenant.post('/api/batches', {
      items: [item, { ...item, priority: 'normal' }],
    });

    expect(await priorityOf(tenant, own)).toBe('low');
    expect(await priorityOf(tenant, high)).toBe('high');
    const [first, second] = batch.body.items;
    expect(await priorityOf(tenant, first.job_id)).toBe('low');
    expect(await priorityOf(tenant, second.job_id)).toBe('normal');
    expect(await priorityOf(tenant, await tenant.start(echo, { text: 'x' }))).toBe('normal');
  });

  test('changes for later jobs, null is normal, and a repeat of a request is the same job', async () => {
    const tenant = await newLateTenant();
    const send = () =>
      tenant.post(
        `/api/${echo}`,
        { text: 'x' },
        { 'x-agent-id': 'late', 'idempotency-key': 'one' },
      );
    const before = (await send()).body.job_id;

    const changed = await tenant.put('/api/agents/late', { priority: null });

    expect(changed.body).toMatchObject({ priority: null, version: 1 });
    expect((await send()).body.job_id).toBe(before);
    expect(await priorityOf(tenant, before)).toBe('low');
    const after = await tenant.start(echo, { text: 'x' }, { 'x-agent-id': 'late' });
    expect(await priorityOf(tenant, after)).toBe('normal');
  });

  test('is not that of jobs that its runs start, nor of retries: those have the one of the first job', async () => {
    const tenant = await newLateTenant();
    const high = { 'x-agent-id': 'late', 'x-priority': 'high', prefer: 'wait=30' };

    const family = await tenant.post(
      '/api/staged/v1.0/family',
      { jobs: [{ skill: echo, input: { text: 'child' } }] },
      high,
    );
    const fail = acting({ fail: { message: 'no', retryable: false } });
    const failed = await tenant.post(`/api/${play}`, fail, high);
    const retry = await tenant.post(`/api/jobs/${failed.body.job_id}/retry`);

    const children = await tenant.get(`/api/jobs?parent_job_id=${family.body.job_id}`);
    expect(await priorityOf(tenant, children.body.data[0].job_id)).toBe('high');
    expect(await priorityOf(tenant, retry.body.job_id)).toBe('high');
  });
});

describe('the priority of a schedule', () => {
  test('is that of its jobs, and null leaves it to the agent', async () => {
    const tenant = await newLateTenant();
    const { body } = await tenant.post('/api/scheduled-jobs', {
      ...schedule,
      ...{ agent_id: 'late', priority: 'high' },
    });
    const at = `/api/scheduled-jobs/${body.id}`;
    const run = async () => priorityOf(tenant, (await tenant.post(`${at}/run`)).body.job_id);
    expect(body).toMatchObject({ priority: 'high' });
    expect(await run()).toBe('high');

    expect((await tenant.put(at, { priority: null })).body).not.toHaveProperty('priority');

    expect(await run()).toBe('low');
    expect((await tenant.put(at, { priority: 'normal' })).body).toMatchObject({
      priority: 'normal',
    });
    expect(await run()).toBe('normal');
    expect((await tenant.get('/api/scheduled-jobs')).body).toMatchObject([{ priority: 'normal' }]);
  });
});

describe('the priority of a trigger', () => {
  test('is that of its jobs, and null leaves it to the agent', async () => {
    const tenant = await newLateTenant();
    const { at, shown, call } = await newTrigger(tenant, { priority: 'high' });
    expect(shown).toMatchObject({ priority: 'high' });
    expect(await call()).toBe('high');

    expect((await tenant.put(at, { priority: null })).body).toMatchObject({ priority: null });
    // Other processes follow a change within a second.
    await expect.poll(call).toBe('low');
  });
});

test('any other value is 400', async () => {
  const tenant = await newTenant(platform);
  const trigger = { ...ofEcho, agent_id: 'default', name: 'Pushes' };

  for (const priority of ['', 'High', 'urgent', 0, ['low'], 'x'.repeat(5_000)]) {
    expectInvalid(await tenant.post('/api/agents', { id: 'other', priority }), 'priority');
    expectInvalid(await tenant.put('/api/agents/default', { priority }), 'priority');
    const ofDefault = { ...schedule, agent_id: 'default', priority };
    expectInvalid(await tenant.post('/api/scheduled-jobs', ofDefault), 'priority');
    expectInvalid(await tenant.post('/api/agent-triggers', { ...trigger, priority }), 'priority');
  }
});
