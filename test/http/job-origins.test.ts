import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const anything = { agent_id: 'default', skill_category: 'staged', skill_name: 'any' };
const schedules = '/api/scheduled-jobs';
const triggers = '/api/agent-triggers';

const originOf = async (tenant: Tenant, jobId: string) => {
  const { body } = await tenant.get(`/api/jobs/${jobId}?include=origin`);
  return { scheduled_job_id: body.scheduled_job_id, trigger_id: body.trigger_id };
};

async function newRunOfSchedule(tenant: Tenant) {
  const fields = { ...anything, cron_expression: '0 0 1 1 *', input: {} };
  const schedule = (await tenant.post(schedules, fields)).body.id as string;
  const run = await tenant.post(`${schedules}/${schedule}/run`);
  return { schedule, jobId: run.body.job_id as string };
}

describe('GET /api/jobs/:jobId?include=origin', () => {
  test('names the scheduled job that a job is a run of, until that is deleted', async () => {
    const tenant = await newTenant(platform);
    const { schedule, jobId } = await newRunOfSchedule(tenant);
    await tenant.jobIn(jobId, 'completed');

    expect(await originOf(tenant, jobId)).toEqual({ scheduled_job_id: schedule, trigger_id: null });
    await tenant.delete(`${schedules}/${schedule}`);
    expect(await originOf(tenant, jobId)).toEqual({ scheduled_job_id: null, trigger_id: null });
  });

  test('names the trigger whose call a job came of, until that is deleted', async () => {
    const tenant = await newTenant(platform);
    const made = await tenant.post(triggers, { ...anything, name: 'Pushes' });
    const { id, token } = made.body;
    const called = await platform.request('POST', `/api/webhooks/agent/${token}`, { body: {} });
    const { job_id } = called.body;

    // Calls are written once a second.
    await waitFor(async () => (await originOf(tenant, job_id)).trigger_id === id, {
      describe: 'the call is written',
    });
    expect(await originOf(tenant, job_id)).toEqual({ scheduled_job_id: null, trigger_id: id });
    await tenant.delete(`${triggers}/${id}`);
    expect(await originOf(tenant, job_id)).toEqual({ scheduled_job_id: null, trigger_id: null });
  });

  test('is null for a job from a client', async () => {
    const tenant = await newTenant(platform);
    const { body } = await tenant.run('util/v1.0/echo', { text: 'x' });

    expect(await originOf(tenant, body.job_id)).toEqual({
      scheduled_job_id: null,
      trigger_id: null,
    });
  });

  test('names it also to who waits for the end', async () => {
    const tenant = await newTenant(platform);
    const { schedule, jobId } = await newRunOfSchedule(tenant);

    const answer = await tenant.get(`/api/jobs/${jobId}?include=origin`, { prefer: 'wait=20' });

    expect(answer.body).toMatchObject({ status: 'completed', scheduled_job_id: schedule });
  });

  test('is absent by default', async () => {
    const tenant = await newTenant(platform);
    const { jobId } = await newRunOfSchedule(tenant);

    const { body } = await tenant.get(`/api/jobs/${jobId}`);

    expect(body).not.toHaveProperty('scheduled_job_id');
    expect(body).not.toHaveProperty('trigger_id');
  });

  test.each(['=', '=Origin', '=timing', '=origin&include=origin', '[]=origin'])(
    'include%s is 400 validation_error, and 404 of a job that is not there',
    async (value) => {
      const tenant = await newTenant(platform);
      const { body } = await tenant.run('util/v1.0/echo', { text: 'x' });

      expectInvalid(await tenant.get(`/api/jobs/${body.job_id}?include${value}`), 'include');
      const other = await newTenant(platform);
      expectRefusal(await other.get(`/api/jobs/${body.job_id}?include${value}`), 404, 'not_found');
    },
  );
});
