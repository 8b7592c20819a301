/** `POST /api/jobs/cancel` and `POST /api/jobs/retry`. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectInvalid, expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { acting, play, startStaged } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const echo = 'util/v1.0/echo';
const later = { 'x-delay-seconds': '3600' };

test('cancels the jobs of a filter, after it has counted them', async () => {
  const tenant = await newTenant(platform);
  const jobId = await tenant.start(echo, { text: 'x' }, later);
  await tenant.start(echo, { text: 'y' }, later);
  const filters = { skill_category: 'util', status: 'queued' };

  const dry = await tenant.post('/api/jobs/cancel', { ...filters, dry_run: true });
  expect(dry).toMatchObject({ status: 200, body: { cancelled: 0, remaining: 2, done: false } });
  const done = await tenant.post('/api/jobs/cancel', filters);

  expect(done.body).toEqual({ cancelled: 2, stopping: 0, remaining: 0, done: true, next: null });
  expect((await tenant.get(`/api/jobs/${jobId}`)).body.status).toBe('cancelled');
});

test('runs the failed jobs of a filter again', async () => {
  const tenant = await newTenant(platform);
  const failing = acting({ fail: { message: 'no', retryable: false } });
  const { body: job } = await tenant.run(play, failing);
  const filters = { created_after: '2020-01-01T00:00:00Z' };

  const done = await tenant.post('/api/jobs/retry', filters);

  expect(done.body).toEqual({ retried: 1, refused: {}, remaining: 0, done: true, next: null });
  const list = await tenant.get('/api/jobs');
  expect(list.body.total).toBe(2);
  const again = list.body.data.find(({ job_id }: { job_id: string }) => job_id !== job.job_id);
  expect((await tenant.get(`/api/jobs/${again.job_id}`)).body.retry_of).toBe(job.job_id);
});

describe.each(['cancel', 'retry'])('POST /api/jobs/%s', (verb) => {
  const path = `/api/jobs/${verb}`;

  test.each([
    [{}, 'body'],
    [{ dry_run: true }, 'body'],
    [{ status: 'completed' }, 'status'],
    [{ created_after: 'yesterday' }, 'created_after'],
    [{ agent: 'default' }, 'agent'],
    [{ agent_id: 'default', after: 5 }, 'after'],
    [{ agent_id: 'default', after: 'next' }, 'after'],
  ])('%j is 400', async (body, field) => {
    expectInvalid(await (await newTenant(platform)).post(path, body), field);
  });

  test('without a key is 401', async () => {
    expectRefusal(
      await platform.request('POST', path, { body: {} }),
      401,
      'authentication_required',
    );
  });
});
