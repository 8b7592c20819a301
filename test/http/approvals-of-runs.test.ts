/** Runs that ask a person with `ctx.approve` (docs/durable.md). */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Platform } from '../support/platform.ts';
import { dataDirectory, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const asksPerson = 'staged/v1.0/asks-person';
const asks = { title: 'Ship order 7?', details: { total: 129 }, timeout: '7d' };

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

/** A job that waits for the decision, and its approval. */
async function waiting(tenant: Tenant, more: object = {}) {
  const log = join(dataDirectory(), 'log');
  const jobId = await tenant.start(asksPerson, { asks, log, ...more });
  await tenant.jobIn(jobId, 'waiting');
  const { body } = await tenant.get(`/api/approvals?job_id=${jobId}`);
  const [approval] = body.data;
  const begun = () => readFileSync(log, 'utf8').trim().split('\n').length;
  return { jobId, approval, begun, at: `/api/approvals/${approval.approval_id}` };
}

test('a job below asks for the job above, whose user it names, and both say what they wait for', async () => {
  const tenant = await newTenant(platform);
  const jobs = [{ skill: asksPerson, input: { asks } }];
  const above = await tenant.start('staged/v1.0/family', { jobs }, { 'x-user-id': 'ada' });
  const other = await waiting(tenant);

  const list = `/api/approvals?status=pending&job_id=${above}`;
  const [approval] = await waitFor(
    async () => {
      const { body } = await tenant.get(list);
      return body.data.length > 0 ? body.data : null;
    },
    { describe: () => 'the approval of the job below' },
  );
  expect(approval.user_id).toBe('ada');
  expect(approval.job_id).not.toBe(above);
  const below = (await tenant.jobIn(approval.job_id, 'waiting')).body;
  const deadline = approval.expires_at;
  expect(below.waiting_for).toBe(`a decision of a person (step ship), until ${deadline}`);
  const { body } = await tenant.jobIn(above, 'waiting');
  expect(body.waiting_for).toBe('a job that it has started (step job)');
  expect((await tenant.get(`/api/approvals?job_id=${other.jobId}`)).body.total).toBe(1);

  const at = `/api/approvals/${approval.approval_id}`;
  expect((await tenant.get(at)).body.user_id).toBe('ada');
  expect((await tenant.post(`${at}/approve`)).body.user_id).toBe('ada');
  const ended = await tenant.jobIn(above, 'completed');
  expect(ended.body.waiting_for).toBeNull();
  expect((await tenant.get(`/api/approvals?job_id=${above}`)).body.total).toBe(1);
});

describe.each([
  ['approve', true],
  ['reject', false],
] as const)('a run that asks, and is answered with %s', (verb, approved) => {
  test('goes on with the decision, and has asked once', async () => {
    const tenant = await newTenant(platform);
    const { jobId, approval, begun, at } = await waiting(tenant);
    expect(approval).toMatchObject({
      step: 'ship',
      title: asks.title,
      details: asks.details,
      status: 'pending',
    });

    await tenant.post(`${at}/${verb}`, { reason: 'Checked.' });
    const { body: job } = await tenant.jobIn(jobId, 'completed');

    const by = { kind: 'api_key', id: tenant.keyId };
    expect(job.output).toEqual({ approved, by, reason: 'Checked.' });
    expect(job.attempt).toBe(1);
    expect(begun()).toBe(2);
    expect((await tenant.get(`/api/approvals?job_id=${jobId}`)).body.total).toBe(1);
    const { body: steps } = await tenant.get(`/api/jobs/${jobId}/steps`);
    expect(steps.data).toMatchObject([
      {
        kind: 'approval',
        name: 'ship',
        status: 'completed',
        waits_for: { approval_id: approval.approval_id },
      },
    ]);
  });
});

describe('a run that asks', () => {
  test('shows the steps that are approvals to keys with their scope alone', async () => {
    const tenant = await newTenant(platform);
    const { jobId } = await waiting(tenant);
    const of = { organization_id: tenant.organization, scopes: ['staged'] };
    const other = await newTenant(platform, of);
    const path = `/api/jobs/${jobId}/steps`;

    expect((await tenant.get(path)).body).toMatchObject({ total: 1, data: [{ kind: 'approval' }] });
    expect((await other.get(path)).body).toMatchObject({ total: 0, data: [] });
    expect((await other.get(`${path}?status=waiting`)).body).toMatchObject({ total: 0, data: [] });
  });

  test('is not asked again in a further attempt', async () => {
    const tenant = await newTenant(platform);
    const { jobId, at, begun } = await waiting(tenant, { failures: 2 });

    await tenant.post(`${at}/approve`);
    const { body: job } = await tenant.jobIn(jobId, 'completed');

    expect(job.output).toMatchObject({ approved: true });
    expect(job.attempt).toBe(3);
    expect(begun()).toBe(4);
    expect((await tenant.get(`/api/approvals?job_id=${jobId}`)).body.total).toBe(1);
  });

  test('gets no for an answer when there is no decision in time', async () => {
    const tenant = await newTenant(platform);
    const jobId = await tenant.start(asksPerson, { asks: { ...asks, timeout: '50ms' } });

    const { body: job } = await tenant.jobIn(jobId, 'completed');

    expect(job.output).toEqual({ approved: false, by: null, reason: 'expired' });
    const { body } = await tenant.get(`/api/approvals?job_id=${jobId}`);
    expect(body.data).toMatchObject([{ status: 'expired' }]);
  });

  test.each([
    ['title', { ...asks, title: 'Ship it all?' }],
    ['details', { ...asks, details: { total: 130 } }],
  ])('fails for good if its code asks for another %s when it goes on', async (_, changed) => {
    const tenant = await newTenant(platform);
    const question = join(dataDirectory(), 'question');
    const { jobId, at } = await waiting(tenant, { question });
    writeFileSync(question, JSON.stringify(changed));

    await tenant.post(`${at}/approve`);
    const { body: job } = await tenant.jobIn(jobId, 'failed');

    expect(job.error.code).toBe('replay_diverged');
    expect(job.error.message).toContain('"ship"');
    expect((await tenant.get(`/api/approvals?job_id=${jobId}`)).body.total).toBe(1);
  });

  test('may give another deadline when it goes on: the first one counts', async () => {
    const tenant = await newTenant(platform);
    const question = join(dataDirectory(), 'question');
    const { jobId, at } = await waiting(tenant, { question });
    writeFileSync(question, JSON.stringify({ ...asks, timeout: '1d' }));

    await tenant.post(`${at}/approve`);

    expect((await tenant.jobIn(jobId, 'completed')).body.output).toMatchObject({ approved: true });
  });

  test('loses its question when its key is revoked', async () => {
    const tenant = await newTenant(platform);
    const other = await newTenant(platform, { organization_id: tenant.organization });
    const { at } = await waiting(tenant);

    await platform.admin('DELETE', `/admin/api-keys/${tenant.keyId}?cancel_jobs=true`);

    const status = await waitFor(
      async () => {
        const { body } = await other.get(at);
        return body.status === 'pending' ? null : body.status;
      },
      { describe: 'the end of the question' },
    );
    expect(status).toBe('cancelled');
  });

  test.each([
    ['no title', { details: {} }],
    ['a title of 201 characters', { title: 'x'.repeat(201) }],
    ['details that are a list', { title: 'Ship?', details: [1] }],
    ['details above 64 KiB', { title: 'Ship?', details: { a: 'x'.repeat(65_536) } }],
    ['a timeout of 366 days', { title: 'Ship?', timeout: '366d' }],
  ])('with %s fails, and a person is not asked', async (_, wrong) => {
    const tenant = await newTenant(platform);

    const { body: job } = await tenant.run(asksPerson, { asks: wrong });

    expect(job).toMatchObject({ status: 'failed', error: { code: 'skill_execution_failed' } });
    expect((await tenant.get(`/api/approvals?job_id=${job.job_id}`)).body.total).toBe(0);
  });
});
