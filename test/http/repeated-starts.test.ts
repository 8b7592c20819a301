/** `Idempotency-Key` of a retry and of a scheduled job that is run at once. Resumed retries: `retry-resumed.test.ts`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Answer, Platform } from '../support/platform.ts';
import { sendRaw } from '../support/raw-http.ts';
import { acting, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const withKey = (key: string) => ({ 'idempotency-key': key });
const isReplayed = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true';
const totalOf = async (tenant: Tenant, path: string) => (await tenant.get(path)).body.total;

/** The path that runs a job that has failed again. */
async function retryPath(tenant: Tenant): Promise<string> {
  const { body } = await tenant.run(play, acting({ fail: { message: 'no', retryable: false } }));
  return `/api/jobs/${body.job_id}/retry`;
}

/** The path that runs a scheduled job at once; `n` makes it another one. */
async function runPath(tenant: Tenant, n = 0): Promise<string> {
  const { body } = await tenant.post('/api/scheduled-jobs', {
    agent_id: 'default',
    skill_category: 'staged',
    skill_name: 'play',
    cron_expression: `${n} 0 1 1 *`,
    input: acting(),
    enabled: false,
  });
  return `/api/scheduled-jobs/${body.id}/run`;
}

describe.each([
  ['a retry', retryPath],
  ['a run at once', runPath],
])('the Idempotency-Key of %s', (_what, pathOf) => {
  test('gives a repeat the first answer, also at an agent that is paused by now', async () => {
    const tenant = await newTenant(platform);
    const path = await pathOf(tenant);
    const before = await totalOf(tenant, '/api/jobs');
    const first = await tenant.post(path, undefined, withKey('one'));
    await tenant.jobIn(first.body.job_id, 'completed', 'failed');

    const second = await tenant.post(path, undefined, withKey('one'));
    await tenant.put('/api/agents/default', { status: 'paused' });
    const third = await tenant.post(path, undefined, withKey('one'));

    expect([first, second, third].map(isReplayed)).toEqual([false, true, true]);
    for (const { status, text, headers } of [second, third]) {
      expect({ status, text }).toEqual({ status: 202, text: first.text });
      expect(headers.get('location')).toBe(first.headers.get('location'));
    }
    expectRefusal(await tenant.post(path, undefined, withKey('two')), 422, 'agent_paused');
    expect(await totalOf(tenant, '/api/jobs')).toBe(before + 1);
  });

  test('makes one job of five requests at once', async () => {
    const tenant = await newTenant(platform);
    const path = await pathOf(tenant);
    const before = await totalOf(tenant, '/api/jobs');

    const answers = await Promise.all(
      Array.from({ length: 5 }, () => tenant.post(path, undefined, withKey('five'))),
    );

    expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(202));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(answers.filter(isReplayed)).toHaveLength(4);
    expect(await totalOf(tenant, '/api/jobs')).toBe(before + 1);
  });

  test('is of one API key: that of another one makes a job of its own', async () => {
    const tenant = await newTenant(platform);
    const { organization } = tenant;
    const other = await newTenant(platform, { organization_id: organization });
    const path = await pathOf(tenant);

    const first = await tenant.post(path, undefined, withKey('one'));
    const second = await other.post(path, undefined, withKey('one'));

    expect(second.status).toBe(202);
    expect(second.body.job_id).not.toBe(first.body.job_id);
  });

  test('that is empty, or comes twice, is 400', async () => {
    const tenant = await newTenant(platform);
    const path = await pathOf(tenant);
    const line = 'idempotency-key: a\r\n';

    const twice = await sendRaw(
      platform.url,
      `POST ${path} HTTP/1.1\r\nHost: x\r\nx-api-key: ${tenant.key}\r\n${line}${line}content-length: 0\r\n\r\n`,
    );

    expectRefusal(twice, 400, 'validation_error');
    expect(twice.body.details[0].field).toBe('idempotency-key');
    expectInvalid(await tenant.post(path, undefined, withKey('')), 'idempotency-key');
  });
});

test('a retry of another job, or for a user, with the key of the first is 422', async () => {
  const tenant = await newTenant(platform);
  const [first, other] = [await retryPath(tenant), await retryPath(tenant)];
  const accepted = await tenant.post(first, {}, withKey('one'));
  const before = await totalOf(tenant, '/api/jobs');

  const answers = [
    await tenant.post(other, {}, withKey('one')),
    await tenant.post(first, { resume: true }, withKey('one')),
    await tenant.post(first, {}, { ...withKey('one'), 'x-user-id': 'ada' }),
    await tenant.post(`/api/${play}`, acting(), withKey('one')),
  ];

  for (const answer of answers) expectRefusal(answer, 422, 'idempotency_key_reused');
  const same = await tenant.post(first, { resume: false }, withKey('one'));
  expect(same.body.job_id).toBe(accepted.body.job_id);
  expect(await totalOf(tenant, '/api/jobs')).toBe(before);
});

test('a repeat of a run at once makes no second entry among the runs', async () => {
  const tenant = await newTenant(platform);
  const [first, other] = [await runPath(tenant), await runPath(tenant, 1)];
  const accepted = await tenant.post(first, undefined, withKey('one'));
  const done = await tenant.jobIn(accepted.body.job_id, 'completed');

  const again = await tenant.post(first, undefined, withKey('one'));
  const elsewhere = await tenant.post(other, undefined, withKey('one'));

  expect(again.body.job_id).toBe(done.body.job_id);
  expectRefusal(elsewhere, 422, 'idempotency_key_reused');
  expect(await totalOf(tenant, `${first}s`)).toBe(1);
  expect(await totalOf(tenant, `${other}s`)).toBe(0);
  const shown = async (path: string) => (await tenant.get(path.slice(0, -'/run'.length))).body;
  expect(await shown(first)).toMatchObject({ last_run_status: 'completed' });
  expect(await shown(other)).toMatchObject({ last_run_job_id: null });
});
