import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anId, aTimestamp, expectInvalid, expectRefusal } from '../support/expectations.ts';
import { hostileLimits, hostileOffsets } from '../support/hostile-pages.ts';
import { type ManualClock, manualClock } from '../support/manual-clock.ts';
import { recordEvents } from '../support/outbox.ts';
import type { Platform } from '../support/platform.ts';
import { acting, dataDirectory, gate, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const minute = 60_000;
const path = '/api/scheduled-jobs';
const play = {
  agent_id: 'default',
  skill_category: 'staged',
  skill_name: 'play',
  cron_expression: '* * * * *',
};

const clock = manualClock();
let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ clock });
});
afterAll(() => platform.stop());

async function made(tenant: Tenant, fields: Record<string, unknown> = {}): Promise<string> {
  await recordEvents(platform.database, tenant.organization);
  const { status, body, text } = await tenant.post(path, {
    ...play,
    input: acting(),
    ...fields,
  });
  if (status !== 201) throw new Error(text);
  return body.id;
}

/** The scheduled job once its last run is in one of these states. */
function lastRunIn(tenant: Tenant, id: string, ...statuses: string[]) {
  return waitFor(
    async () => {
      const { body } = await tenant.get(`${path}/${id}`);
      return statuses.includes(body.last_run_status) ? body : null;
    },
    { describe: `the last run of ${id} is ${statuses.join(' or ')}` },
  );
}

/** Its newest `n` runs, once there are so many. */
function runsOf(tenant: Tenant, id: string, n: number) {
  return waitFor(
    async () => {
      const { body } = await tenant.get(`${path}/${id}/runs`);
      return body.total >= n ? body : null;
    },
    { describe: `${n} runs of ${id}` },
  );
}

async function eventsOf({ organization }: Tenant, on = platform) {
  const rows = await on.database.read.kysely
    .selectFrom('events')
    .select(['type', 'data'])
    .where('organization_id', '=', organization)
    .orderBy('seq')
    .execute();
  return rows.map(({ type, data }) => ({ type, data: JSON.parse(data) }));
}

/** To the beginning of the next minute. */
function toNextMinute(of: ManualClock = clock): number {
  of.advance(minute - (of.now() % minute));
  return of.now();
}

describe('a scheduled run', () => {
  test('fires in its minute, in a conversation of its own, and sends its event', async () => {
    const tenant = await newTenant(platform, { client_name: 'nightly' });
    const id = await made(tenant);

    const slot = new Date(toNextMinute()).toISOString();
    const shown = await lastRunIn(tenant, id, 'completed');

    expect(shown).toMatchObject({ last_run_at: slot, last_run_job_id: anId });
    expect(shown.next_run_at).toBe(new Date(clock.now() + minute).toISOString());
    const { body: job } = await tenant.get(`/api/jobs/${shown.last_run_job_id}`);
    expect(job).toMatchObject({
      status: 'completed',
      trigger_type: 'scheduled',
      queue: 'scheduled-jobs',
      max_attempts: 4,
      attempt: 1,
      user_id: 'nightly',
    });
    const { body: conversation } = await tenant.get(`/api/conversations/${job.conversation_id}`);
    expect(conversation).toMatchObject({ trigger_type: 'scheduled', status: 'completed' });
    const events = await eventsOf(tenant);
    expect(events.map(({ type }) => type)).toEqual([
      'conversation.created',
      'skill.completed',
      'scheduled_job.completed',
    ]);
    expect(events[2]?.data).toMatchObject({ scheduled_job_id: id, scheduled_for: slot });
  });

  test('that always fails has exactly 4 attempts, one skill.failed, and is failed', async () => {
    const tenant = await newTenant(platform);
    const id = await made(tenant, { input: acting({ fail: { message: 'no luck' } }) });

    toNextMinute();
    const { last_run_job_id: jobId } = await lastRunIn(tenant, id, 'active');
    // Retries are due by the same clock; the slots that come meanwhile find the run active.
    const shown = await waitFor(
      async () => {
        clock.advance(100);
        const { body } = await tenant.get(`${path}/${id}`);
        return body.last_run_status === 'failed' ? body : null;
      },
      { describe: 'the run has failed', deadlineMs: 20_000 },
    );

    expect(shown.last_run_job_id).toBe(jobId);
    const { body: job } = await tenant.get(`/api/jobs/${jobId}`);
    expect(job).toMatchObject({ status: 'failed', attempt: 4, max_attempts: 4 });
    const told = (await eventsOf(tenant)).filter(({ type }) => type.endsWith('.failed'));
    expect(told.map(({ type }) => type)).toEqual(['skill.failed', 'scheduled_job.failed']);
    expect(told[0]?.data).toMatchObject({ attempts: 4 });
    await tenant.delete(`${path}/${id}`);
  });

  test('that is active when its scheduled job is deleted finishes, and no run follows', async () => {
    const tenant = await newTenant(platform);
    const { path: until, open } = gate();
    const id = await made(tenant, { input: acting({ until }) });
    toNextMinute();
    const { last_run_job_id: jobId } = await lastRunIn(tenant, id, 'active');
    await tenant.jobIn(jobId, 'active');

    expect((await tenant.delete(`${path}/${id}`)).status).toBe(204);
    open();
    const { body: job } = await tenant.jobIn(jobId, 'completed', 'failed', 'cancelled');
    const witness = await made(tenant, { agent_id: 'default' });
    toNextMinute();
    await runsOf(tenant, witness, 1);

    expect(job).toMatchObject({ status: 'completed', attempt: 1 });
    expectRefusal(await tenant.get(`${path}/${id}`), 404, 'not_found');
    expect((await tenant.get('/api/jobs')).body.total).toBe(2);
    await tenant.delete(`${path}/${witness}`);
  });

  test('does not fire while the agent is paused: agent.error reports it once a slot', async () => {
    const tenant = await newTenant(platform);
    const id = await made(tenant);
    await tenant.put('/api/agents/default', { status: 'paused' });

    toNextMinute();
    const { data } = await runsOf(tenant, id, 1);
    await tenant.delete(`${path}/${id}`);

    expect(data).toMatchObject([{ outcome: 'agent_paused', job_id: null, status: null }]);
    const errors = (await eventsOf(tenant)).filter(({ type }) => type === 'agent.error');
    expect(errors).toMatchObject([{ data: { code: 'agent_paused', job_id: null } }]);
    expect((await tenant.get('/api/jobs')).body.total).toBe(0);
  });

  test('does not come once the key that made it is revoked', async () => {
    const tenant = await newTenant(platform);
    const other = await newTenant(platform, { organization_id: tenant.organization });
    const id = await made(tenant);
    await platform.admin('DELETE', `/admin/api-keys/${tenant.keyId}`);

    toNextMinute();
    const { data } = await runsOf(other, id, 1);
    await other.delete(`${path}/${id}`);

    expect(data).toMatchObject([{ outcome: 'key_revoked', message: expect.stringMatching(/key/) }]);
    const errors = (await eventsOf(tenant)).filter(({ type }) => type === 'agent.error');
    expect(errors).toHaveLength(1);
  });
});

describe('a platform that was stopped for five minutes', () => {
  test('catches up with the last slot once, and records the others as missed', async () => {
    const own = manualClock();
    const environment = { DATA_DIR: dataDirectory() };
    const first = await startStaged({ clock: own, environment });
    const before = await newTenant(first);
    const id = await made(before);
    await first.app.stop();
    own.advance(5 * minute + 30_000);

    const second = await startStaged({ clock: own, environment });
    const get = (rest: string) =>
      second.request('GET', `${path}/${id}${rest}`, { key: before.key });
    const done = await waitFor(
      async () => {
        const { body } = await get('');
        return body.last_run_status === 'completed' ? body : null;
      },
      { describe: 'the run was caught up with' },
    );
    const { body } = await get('/runs');
    await second.stop();

    expect(body.data.map(({ outcome }: { outcome: string }) => outcome)).toEqual([
      'caught_up',
      ...Array(4).fill('missed'),
    ]);
    expect(body.data[0]).toMatchObject({
      job_id: done.last_run_job_id,
      scheduled_for: '2026-11-20T12:05:00.000Z',
    });
  });
});

describe('POST /api/scheduled-jobs/:jobId/run', () => {
  test('answers 202 as an execution does, and runs it, disabled or not', async () => {
    const tenant = await newTenant(platform);
    const id = await made(tenant, { enabled: false });

    const { status, body, headers } = await tenant.post(`${path}/${id}/run`);

    expect({ status, body }).toEqual({
      status: 202,
      body: {
        job_id: anId,
        status: 'queued',
        conversation_id: anId,
        agent_id: 'default',
        skill_category: 'staged',
        skill_name: 'play',
        skill_version: 'v1.0',
        created_at: aTimestamp,
      },
    });
    expect(headers.get('location')).toBe(`/api/jobs/${body.job_id}`);
    expect(await lastRunIn(tenant, id, 'completed')).toMatchObject({
      last_run_job_id: body.job_id,
      enabled: false,
    });
    expect((await tenant.get(`/api/jobs/${body.job_id}`)).body).toMatchObject({
      trigger_type: 'scheduled',
      status: 'completed',
    });
    const { data } = (await tenant.get(`${path}/${id}/runs`)).body;
    expect(data).toEqual([
      {
        id: anId,
        scheduled_for: aTimestamp,
        outcome: 'run_now',
        slots: 1,
        message: null,
        job_id: body.job_id,
        status: 'completed',
        created_at: aTimestamp,
      },
    ]);
  });

  test('accepts only an empty object as its body', async () => {
    const tenant = await newTenant(platform);
    const id = await made(tenant, { enabled: false });

    expect((await tenant.post(`${path}/${id}/run`, {})).status).toBe(202);
    expectInvalid(await tenant.post(`${path}/${id}/run`, { input: {} }), 'input');
    expectRefusal(await tenant.post(`${path}/${id}/run`, '[]'), 400, 'validation_error');
  });

  test('needs the scopes of the skill: 403 insufficient_scope', async () => {
    const tenant = await newTenant(platform);
    const { organization } = tenant;
    const id = await made(tenant, { enabled: false });
    const other = await newTenant(platform, { organization_id: organization, scopes: ['util'] });

    expectRefusal(await other.post(`${path}/${id}/run`), 403, 'insufficient_scope');
    expect((await other.get(`${path}/${id}/runs`)).body.total).toBe(0);
  });

  test('at a paused agent is 422 agent_paused', async () => {
    const tenant = await newTenant(platform);
    const id = await made(tenant, { enabled: false });
    await tenant.put('/api/agents/default', { status: 'paused' });

    expectRefusal(await tenant.post(`${path}/${id}/run`), 422, 'agent_paused');
    expect((await tenant.get(`${path}/${id}`)).body.last_run_at).toBeNull();
  });

  test('of a skill that is deprecated is 404 skill_not_found', async () => {
    const tenant = await newTenant(platform);
    const id = await made(tenant, { skill_name: 'any', enabled: false });
    const version = '/admin/skills/staged/v1.0/any';
    await platform.admin('POST', `${version}/deprecate`);

    const answer = await tenant.post(`${path}/${id}/run`);
    await platform.admin('POST', `${version}/activate`);

    expectRefusal(answer, 404, 'skill_not_found');
  });
});

describe('GET /api/scheduled-jobs/:jobId/runs', () => {
  test('is {data, total, limit, offset}, newest first', async () => {
    const tenant = await newTenant(platform);
    const id = await made(tenant, { enabled: false });
    const jobIds: string[] = [];
    for (let n = 0; n < 3; n++) {
      jobIds.push((await tenant.post(`${path}/${id}/run`)).body.job_id);
    }
    const page = async (query: string) => {
      const { data, ...rest } = (await tenant.get(`${path}/${id}/runs${query}`)).body;
      return [...data.map(({ job_id }: { job_id: string }) => jobIds.indexOf(job_id)), rest];
    };

    expect(await page('')).toEqual([2, 1, 0, { total: 3, limit: 50, offset: 0 }]);
    expect(await page('?limit=1&offset=1')).toEqual([1, { total: 3, limit: 1, offset: 1 }]);
    expect(await page('?limit=200&offset=3')).toEqual([{ total: 3, limit: 200, offset: 3 }]);
  });

  test.each([...hostileLimits, 'limit=201'])('%s is 400', async (query) => {
    const tenant = await newTenant(platform);
    const id = await made(tenant, { enabled: false });

    expectInvalid(await tenant.get(`${path}/${id}/runs?${query}`), 'limit');
  });

  test.each(hostileOffsets)('%s is 400', async (query) => {
    const tenant = await newTenant(platform);
    const id = await made(tenant, { enabled: false });

    expectInvalid(await tenant.get(`${path}/${id}/runs?${query}`), 'offset');
  });
});
