/** Jobs that the run of a job starts with `ctx.run`. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({ environment: { WORKER_CONCURRENCY: '2' } });
});
afterAll(() => platform.stop());

const family = 'staged/v1.0/family';
const echo = (text: string) => ({ skill: 'util/v1.0/echo', input: { text } });
const playing = (...steps: Parameters<typeof acting>) => ({ skill: play, input: acting(...steps) });
const breaking = playing({ fail: { message: 'no paper', retryable: false } });

interface Listed {
  readonly job_id: string;
  readonly status: string;
  readonly skill_name: string;
}

async function childrenOf(tenant: Tenant, jobId: string): Promise<Listed[]> {
  const { body } = await tenant.get(`/api/jobs?parent_job_id=${jobId}&limit=200`);
  expect(body.total).toBe(body.data.length);
  return body.data;
}

/** A waiting parent of a child that runs until the gate opens. */
async function waitingFamily(tenant: Tenant, more: object = {}) {
  const end = gate();
  const jobs = [playing({ until: end.path })];
  const id = await tenant.start(family, { jobs, ...more });
  await tenant.jobIn(id, 'waiting');
  const [child] = await childrenOf(tenant, id);
  if (child === undefined) throw new Error('There is no child.');
  return { id, child: child.job_id, end };
}

describe('a run that starts jobs', () => {
  test('gets their outputs, in one attempt; they are listed with their parent', async () => {
    const tenant = await newTenant(platform);

    const { body } = await tenant.run(family, { jobs: [echo('a'), echo('b')] });

    expect(body).toMatchObject({
      status: 'completed',
      attempt: 1,
      parent_job_id: null,
      output: [{ text: 'a' }, { text: 'b' }],
    });
    const children = await childrenOf(tenant, body.job_id);
    expect(children).toMatchObject([
      { parent_job_id: body.job_id, status: 'completed', agent_id: 'default' },
      { parent_job_id: body.job_id, status: 'completed', agent_id: 'default' },
    ]);
    const { body: child } = await tenant.get(`/api/jobs/${children[0]?.job_id}`);
    expect(child).toMatchObject({ parent_job_id: body.job_id, trigger_type: 'api' });
    expect(child.conversation_id).not.toBe(body.conversation_id);
    const { body: steps } = await tenant.get(`/api/jobs/${body.job_id}/steps`);
    expect(steps.data).toMatchObject([
      { kind: 'run', name: 'job', status: 'completed' },
      { kind: 'run', name: 'job', status: 'completed' },
    ]);
  });

  test('of two hundred jobs gets each output once', async () => {
    const tenant = await newTenant(platform);
    const texts = Array.from({ length: 200 }, (_, i) => `parcel ${i}`);

    const id = await tenant.start(family, { jobs: texts.map(echo) });
    const { body } = await tenant.jobIn(id, 'completed', 'failed');

    expect(body).toMatchObject({ status: 'completed', output: texts.map((text) => ({ text })) });
    expect(await childrenOf(tenant, id)).toHaveLength(200);
  }, 120_000);

  test('waits without a slot: eight jobs below each other run with a concurrency of one', async () => {
    const single = await startStaged({ environment: { WORKER_CONCURRENCY: '1' } });
    onTestFinished(() => single.stop());
    const tenant = await newTenant(single);

    const { body } = await tenant.run(family, { depth: 8 });

    expect(body).toMatchObject({ status: 'completed', output: { depth: 8, below: { depth: 7 } } });
  });

  test('may not start a ninth below each other', async () => {
    const tenant = await newTenant(platform);

    const { body } = await tenant.run(family, { depth: 9 });

    expect(body).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('is 8 jobs below the first one') },
    });
  });

  test('fails with the code and the message of a child that failed, unless it catches them', async () => {
    const tenant = await newTenant(platform);
    const error = { code: 'skill_execution_failed', message: 'no paper' };

    const { body } = await tenant.run(family, { jobs: [breaking] });
    expect(body).toMatchObject({ status: 'failed', attempt: 1, error });

    const caught = await tenant.run(family, { jobs: [breaking, echo('a')], catches: true });
    expect(caught.body).toMatchObject({ status: 'completed', output: [error, { text: 'a' }] });
  });

  test.each([
    [{ skill: 'util/v1.0/none', input: {} }, 'there is no active skill util/v1.0/none'],
    [{ skill: 'util/v1.0/echo', input: 3 }, 'the input does not fit the schema of util/v1.0/echo'],
    [{ skill: 'staged/v1.0/order', input: { count: 1 } }, 'does not fit the schema of staged/v1.0'],
  ])('is told why a job cannot be started: %j', async (job, message) => {
    const tenant = await newTenant(platform);

    const { body } = await tenant.run(family, { jobs: [job] });

    const error = { message: expect.stringContaining(message) };
    expect(body).toMatchObject({ status: 'failed', attempt: 1, error });
    expect(await childrenOf(tenant, body.job_id)).toEqual([]);
  });

  test('may start only skills that its key allows', async () => {
    const tenant = await newTenant(platform, { scopes: ['staged'] });

    const { body } = await tenant.run(family, { jobs: [echo('a')] });

    expect(body.error.message).toContain('its API key is revoked or lacks a scope of the skill');
  });

  test('that completes leaves running what it does not wait for', async () => {
    const tenant = await newTenant(platform);

    const end = gate();

    const jobs = [echo('a'), playing({ until: end.path })];
    const { body } = await tenant.run(family, { jobs, leaves: true });

    expect(body).toMatchObject({ status: 'completed', output: { text: 'a' } });
    const children = await childrenOf(tenant, body.job_id);
    const left = children.find(({ skill_name }) => skill_name === 'play')?.job_id ?? '';
    await tenant.jobIn(left, 'active');
    end.open();
    await tenant.jobIn(left, 'completed');
  });
});

describe('a family of jobs', () => {
  test('whose parent is cancelled ends: the parent at once, a running child as soon as it stops', async () => {
    const tenant = await newTenant(platform);
    const { id, child } = await waitingFamily(tenant);
    await tenant.jobIn(child, 'active');

    const { status, body } = await tenant.post(`/api/jobs/${id}/cancel`);

    expect({ status, of: body.status }).toEqual({ status: 200, of: 'cancelled' });
    const ended = await tenant.jobIn(child, 'cancelled');
    expect(ended.body.error.code).toBe('cancelled');
  });

  test('whose child is cancelled goes on: the parent gets the code cancelled', async () => {
    const tenant = await newTenant(platform);
    const { id, child } = await waitingFamily(tenant, { catches: true });

    await tenant.post(`/api/jobs/${child}/cancel`);

    const { body } = await tenant.jobIn(id, 'completed', 'failed');
    const error = { code: 'cancelled', message: 'The job was cancelled' };
    expect(body).toMatchObject({ status: 'completed', output: [error] });
  });

  test('whose parent fails because of one child ends: the others are cancelled', async () => {
    const tenant = await newTenant(platform);
    const end = gate();

    const id = await tenant.start(family, { jobs: [breaking, playing({ until: end.path })] });

    const { body } = await tenant.jobIn(id, 'failed');
    expect(body.error.message).toBe('no paper');
    for (const { job_id, status } of await childrenOf(tenant, id)) {
      if (status !== 'failed') await tenant.jobIn(job_id, 'cancelled');
    }
  });

  test('whose child is retried by hand has one job more, without a parent', async () => {
    const tenant = await newTenant(platform);
    const { body: parent } = await tenant.run(family, { jobs: [breaking] });
    const [child] = await childrenOf(tenant, parent.job_id);

    const { body } = await tenant.post(`/api/jobs/${child?.job_id}/retry`);

    const again = await tenant.get(`/api/jobs/${body.job_id}`);
    expect(again.body).toMatchObject({ parent_job_id: null, retry_of: child?.job_id });
    expect(await childrenOf(tenant, parent.job_id)).toHaveLength(1);
  });

  test('is not shown to another organization', async () => {
    const tenant = await newTenant(platform);
    const { body } = await tenant.run(family, { jobs: [echo('a')] });

    expect(await childrenOf(await newTenant(platform), body.job_id)).toEqual([]);
  });
});
