import { afterAll, beforeAll, expect, test } from 'vitest';
import { follow } from '../support/event-stream.ts';
import { expectRefusal } from '../support/expectations.ts';
import type { Answer, Platform } from '../support/platform.ts';
import { acting, gate, play, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged({
    environment: {
      STREAMS_PER_KEY_MAX: '2',
      STREAMS_PER_ORGANIZATION_MAX: '3',
      STREAMS_PER_ADDRESS_MAX: '4',
      REQUESTS_PER_KEY_MAX: '4',
      REQUESTS_PER_ORGANIZATION_MAX: '6',
      TRUSTED_PROXIES: '127.0.0.1',
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

test('a key, an organization and an address has as many open streams as it may, and harms no other', async () => {
  const one = await newTenant(platform);
  const sibling = await newTenant(platform, { organization_id: one.organization });
  const other = await newTenant(platform);
  const jobs = [await runningJob(one), await runningJob(other)] as const;
  const by = (client: string, key: string) => ({ 'x-api-key': key, 'x-forwarded-for': client });
  const followAs = ({ key }: Tenant, { jobId }: { jobId: string }, client = '203.0.113.1') =>
    follow(streamOf(jobId), by(client, key));
  const refusalOf = async ({ key }: Tenant, { jobId }: { jobId: string }) => {
    const headers = by('203.0.113.1', key);
    const answer = await platform.request('GET', `/api/jobs/${jobId}/events`, { headers });
    expectRefusal(answer, 503, 'service_unavailable');
    return answer.body.message;
  };

  const streams = [await followAs(one, jobs[0]), await followAs(one, jobs[0])];
  expect(await refusalOf(one, jobs[0])).toContain('2 event streams of one API key');
  streams.push(await followAs(sibling, jobs[0]));
  expect(await refusalOf(sibling, jobs[0])).toContain('3 event streams of one organization');
  streams.push(await followAs(other, jobs[1]));
  expect(streams.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(await refusalOf(other, jobs[1])).toContain('4 event streams of one address');

  // Another client behind the same proxy.
  const elsewhere = await followAs(other, jobs[1], '203.0.113.2');
  expect(elsewhere.status).toBe(200);
  elsewhere.leave();
  streams[0]?.leave();
  await waitFor(async () => (await followAs(other, jobs[1])).status === 200, {
    describe: 'a stream that ended has given its share back',
  });
  for (const { end } of jobs) end.open();
});

/** How the job has ended, in the answer of each request that was not refused. */
async function endsOf(waiting: readonly Promise<Answer>[]): Promise<unknown[]> {
  const answers = await Promise.all(waiting);
  return answers.filter(({ status }) => status === 200).map(({ body }) => body.status);
}

test('a key has as many requests under way as it may', async () => {
  const tenant = await newTenant(platform);
  const { jobId, end } = await runningJob(tenant);
  const wait = () => tenant.get(`/api/jobs/${jobId}`, { prefer: 'wait=60' });
  const waiting = [wait(), wait(), wait(), wait(), wait()];

  // The others wait for the end of the job.
  const refused = await Promise.race(waiting);

  expectRefusal(refused, 503, 'service_unavailable');
  expect(refused.body.message).toContain('4 requests of one API key');
  end.open();
  expect(await endsOf(waiting)).toEqual(Array(4).fill('completed'));
  expect((await tenant.get('/api/agents')).status).toBe(200);
});

test('an organization has as many requests under way as it may, and another one has its own', async () => {
  const one = await newTenant(platform);
  const sibling = await newTenant(platform, { organization_id: one.organization });
  const other = await newTenant(platform);
  const { jobId, end } = await runningJob(one);
  const wait = ({ get }: Tenant) => get(`/api/jobs/${jobId}`, { prefer: 'wait=60' });
  const waiting = [one, one, one, sibling, sibling, sibling, sibling].map(wait);

  const refused = await Promise.race(waiting);

  expectRefusal(refused, 503, 'service_unavailable');
  expect(refused.body.message).toContain('6 requests of one organization');
  expect((await other.get('/api/agents')).status).toBe(200);
  end.open();
  expect(await endsOf(waiting)).toEqual(Array(6).fill('completed'));
});
