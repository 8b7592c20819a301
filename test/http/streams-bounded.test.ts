import { afterAll, beforeAll, expect, test } from 'vitest';
import { follow } from '../support/event-stream.ts';
import { expectRefusal } from '../support/expectations.ts';
import type { Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({
    environment: {
      STREAMS_PER_KEY_MAX: '2',
      STREAMS_PER_ADDRESS_MAX: '3',
      REQUESTS_PER_KEY_MAX: '4',
    },
  });
});
afterAll(() => platform.stop());

const streamOf = (jobId: string) => `${platform.url}/api/jobs/${jobId}/events`;

/** A job that goes on until its gate opens. */
async function runningJob(tenant: Tenant) {
  const end = gate();
  return { end, jobId: await tenant.start(play, acting({ until: end.path })) };
}

test('an open stream ends when its key is revoked', async () => {
  const tenant = await newTenant(platform);
  const reader = await newTenant(platform, { organization_id: tenant.organization });
  const { jobId, end } = await runningJob(tenant);
  const stream = await follow(streamOf(jobId), { 'x-api-key': reader.key });
  await stream.event(({ data }) => data.status === 'active', 'the job is active');

  await platform.admin('DELETE', `/admin/api-keys/${reader.keyId}`);

  const events = await stream.ended;
  expect(events.some(({ data }) => data.status === 'completed')).toBe(false);
  end.open();
});

test('an open stream ends when its key expires', async () => {
  const tenant = await newTenant(platform);
  const reader = await newTenant(platform, {
    organization_id: tenant.organization,
    expires_at: new Date(Date.now() + 2_000).toISOString(),
  });
  const { jobId, end } = await runningJob(tenant);
  const stream = await follow(streamOf(jobId), { 'x-api-key': reader.key });
  expect(stream.status).toBe(200);

  const events = await stream.ended;

  expect(events.some(({ data }) => data.status === 'completed')).toBe(false);
  end.open();
});

test('a key, and an address, has as many open streams as it may', async () => {
  const [one, other] = [await newTenant(platform), await newTenant(platform)];
  const jobs = [await runningJob(one), await runningJob(other)] as const;
  const followAs = ({ key }: Tenant, { jobId }: { jobId: string }) =>
    follow(streamOf(jobId), { 'x-api-key': key });
  const streams = [await followAs(one, jobs[0]), await followAs(one, jobs[0])];

  const third = await one.get(`/api/jobs/${jobs[0].jobId}/events`);

  expectRefusal(third, 503, 'service_unavailable');
  expect(third.body.message).toContain('2 event streams of one API key');
  streams.push(await followAs(other, jobs[1]));
  const fourth = await other.get(`/api/jobs/${jobs[1].jobId}/events`);
  expectRefusal(fourth, 503, 'service_unavailable');
  expect(fourth.body.message).toContain('3 event streams of one address');
  streams[0]?.leave();
  await waitFor(async () => (await followAs(other, jobs[1])).status === 200, {
    describe: 'a stream that ended has given its share back',
  });
  for (const { end } of jobs) end.open();
});

test('a key has as many requests under way as it may', async () => {
  const tenant = await newTenant(platform);
  const { jobId, end } = await runningJob(tenant);
  const wait = () => tenant.get(`/api/jobs/${jobId}`, { prefer: 'wait=60' });
  const waiting = [wait(), wait(), wait(), wait()];

  const refused = await waitFor(
    async () => {
      const answer = await tenant.get('/api/agents');
      return answer.status === 503 ? answer : null;
    },
    { describe: 'a fifth request is refused' },
  );

  expectRefusal(refused, 503, 'service_unavailable');
  end.open();
  for (const answer of await Promise.all(waiting)) expect(answer.body.status).toBe('completed');
  expect((await tenant.get('/api/agents')).status).toBe(200);
});
