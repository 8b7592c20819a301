/** Runs that wait for events, as their author and the sender see them (docs/durable.md, Events). */
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { ListenerAct } from '../fixtures/skills/staged/listener.ts';
import { anId, aTimestamp } from '../support/expectations.ts';
import { embeddedTest, type Platform } from '../support/platform.ts';
import { startProcess } from '../support/process.ts';
import { dataDirectory, stagedSkills, startStaged } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';

let platform: Platform;
beforeAll(async () => {
  platform = await startStaged();
});
afterAll(() => platform.stop());

const listener = 'staged/v1.0/listener';
const news = { event: 'order.paid', key: 'A-17' };

/** A run that has begun to wait; the job's id. */
async function waitingRun(tenant: Tenant, ...acts: ListenerAct[]): Promise<string> {
  const id = await tenant.start(listener, { acts });
  await tenant.jobIn(id, 'waiting');
  return id;
}

/** What a run has heard. */
async function heardBy(tenant: Tenant, id: string): Promise<unknown[]> {
  const { body } = await tenant.jobIn(id, 'completed', 'failed', 'cancelled');
  expect(body).toMatchObject({ status: 'completed', attempt: 1 });
  return body.output.heard;
}

const dataOf = (heard: unknown[]) => heard.map((one) => (one as { data: unknown } | null)?.data);

/** Tells an event; how many jobs waited for it. */
async function tell(tenant: Tenant, body: object = news): Promise<number> {
  const answer = await tenant.post('/api/events', body);
  expect(answer.status, answer.text).toBe(202);
  return answer.body.delivered;
}

test('an event resumes the run that waits for it', async () => {
  const tenant = await newTenant(platform);
  const id = await waitingRun(tenant, { wait: news });

  const { body } = await tenant.post('/api/events', { ...news, data: { amount: 40 } });

  expect(body).toEqual({ event_id: anId, delivered: 1 });
  expect(await heardBy(tenant, id)).toEqual([
    { id: body.event_id, ...news, data: { amount: 40 }, received_at: aTimestamp },
  ]);
});

test('an event that comes before the run waits is not lost', async () => {
  const tenant = await newTenant(platform);
  const first = { event: 'order.placed' };
  const id = await waitingRun(tenant, { wait: first }, { wait: news });

  expect(await tell(tenant, { ...news, data: 1 })).toBe(0);
  expect(await tell(tenant, { ...first, data: 0 })).toBe(1);

  expect(dataOf(await heardBy(tenant, id))).toEqual([0, 1]);
});

test('without an event the wait ends at its timeout, with null', async () => {
  const tenant = await newTenant(platform);
  const id = await tenant.start(listener, { acts: [{ wait: { ...news, timeout: 300 } }] });

  expect(await heardBy(tenant, id)).toEqual([null]);
  expect(await tell(tenant)).toBe(0);
});

test('an event of another key, without a key or of another organization resumes nothing', async () => {
  const tenant = await newTenant(platform);
  const stranger = await newTenant(platform);
  const id = await waitingRun(tenant, { wait: news });

  expect(await tell(tenant, { ...news, key: 'A-18' })).toBe(0);
  expect(await tell(tenant, { event: news.event })).toBe(0);
  expect(await tell(stranger)).toBe(0);
  expect((await tenant.get(`/api/jobs/${id}`)).body.status).toBe('waiting');
  expect(await tell(tenant, { ...news, data: 1 })).toBe(1);

  expect(dataOf(await heardBy(tenant, id))).toEqual([1]);
});

test('an event for one job resumes that job alone', async () => {
  const tenant = await newTenant(platform);
  const [one, other] = [
    await waitingRun(tenant, { wait: news }),
    await waitingRun(tenant, { wait: news }),
  ];

  expect(await tell(tenant, { ...news, job_id: other, data: 1 })).toBe(1);
  expect(dataOf(await heardBy(tenant, other))).toEqual([1]);
  expect(await tell(tenant, { ...news, data: 2 })).toBe(1);

  expect(dataOf(await heardBy(tenant, one))).toEqual([2]);
});

test('an event resumes all runs that wait for it', async () => {
  const tenant = await newTenant(platform);
  const ids = await Promise.all(
    Array.from({ length: 12 }, () => waitingRun(tenant, { wait: news })),
  );

  expect(await tell(tenant, { ...news, data: 'all' })).toBe(12);

  for (const id of ids) expect(dataOf(await heardBy(tenant, id))).toEqual(['all']);
});

test('a loop hears every event once, in the order in which they came', async () => {
  const tenant = await newTenant(platform);
  const numbers = Array.from({ length: 25 }, (_, i) => i);
  const id = await tenant.start(listener, { acts: numbers.map(() => ({ wait: news })) });

  for (const data of numbers) await tell(tenant, { ...news, data });

  expect(dataOf(await heardBy(tenant, id))).toEqual(numbers);
});

test('a loop hears every one of the events that many senders tell at once', async () => {
  const tenant = await newTenant(platform);
  const numbers = Array.from({ length: 25 }, (_, i) => i);
  const id = await tenant.start(listener, { acts: numbers.map(() => ({ wait: news })) });

  await Promise.all(numbers.map((data) => tell(tenant, { ...news, data })));

  const heard = dataOf(await heardBy(tenant, id)) as number[];
  expect(heard.toSorted((a, b) => a - b)).toEqual(numbers);
});

test('two waits for one key in one run get two events, the older wait the first', async () => {
  const tenant = await newTenant(platform);
  const id = await waitingRun(tenant, { together: [news, news] });

  expect(await tell(tenant, { ...news, data: 1 })).toBe(1);
  expect(await tell(tenant, { ...news, data: 2 })).toBe(1);

  const [both] = await heardBy(tenant, id);
  expect(dataOf(both as unknown[])).toEqual([1, 2]);
});

test('a job that is cancelled while it waits hears nothing any more', async () => {
  const tenant = await newTenant(platform);
  const id = await waitingRun(tenant, { wait: news });

  await tenant.post(`/api/jobs/${id}/cancel`);

  expect(await tell(tenant)).toBe(0);
  const left = await platform.database.read.kysely
    .selectFrom('event_waits')
    .selectAll()
    .where('job_id', '=', id)
    .execute();
  expect(left).toEqual([]);
});

test('an event and a cancellation at once end the job once', async () => {
  const tenant = await newTenant(platform);
  for (let round = 0; round < 5; round += 1) {
    const key = `round ${round}`;
    const id = await waitingRun(tenant, { wait: { ...news, key } });

    const [delivered] = await Promise.all([
      tell(tenant, { ...news, key, data: round }),
      tenant.post(`/api/jobs/${id}/cancel`),
    ]);
    const { body } = await tenant.jobIn(id, 'completed', 'cancelled', 'failed');

    if (body.status === 'completed') {
      expect(delivered).toBe(1);
      expect(dataOf(body.output.heard)).toEqual([round]);
    } else expect(body.status).toBe('cancelled');
  }
});

test('the call of a trigger resumes the run that waits for its event', async () => {
  const tenant = await newTenant(platform);
  const { body: trigger } = await tenant.post('/api/agent-triggers', {
    agent_id: 'default',
    name: 'Payments',
    event: { name: news.event, key_mapping: 'body.order' },
    mapping: '{"amount": body.amount}',
  });
  const id = await waitingRun(tenant, { wait: news });

  const { body } = await platform.request('POST', `/api/webhooks/agent/${trigger.token}`, {
    body: { order: news.key, amount: 40 },
  });

  expect(body.delivered).toBe(1);
  expect(dataOf(await heardBy(tenant, id))).toEqual([{ amount: 40 }]);
});

test('a name or key that no event can have fails the job for good', async () => {
  const tenant = await newTenant(platform);
  for (const wait of [{ event: 'a b' }, { event: 'a', key: 'x'.repeat(501) }]) {
    const id = await tenant.start(listener, { acts: [{ wait }] });

    const { body } = await tenant.jobIn(id, 'failed', 'completed');

    expect(body).toMatchObject({ status: 'failed', attempt: 1 });
    expect(body.error.message).toMatch(/event/i);
  }
});

embeddedTest('an event outlives the process that took it, and so does the wait', async () => {
  const dataDir = dataDirectory();
  const environment = { EXECUTORS: '1', SKILLS_DIR: stagedSkills.at(-1) };
  const first = await startProcess(dataDir, environment);
  const key = await first.key();
  const acts = [{ wait: news }, { wait: news }, { wait: news }];
  const send = async ({ request }: typeof first, data: number) => {
    const { status, body } = await request('POST', '/api/events', { key, body: { ...news, data } });
    expect(status).toBe(202);
    return body.delivered as number;
  };
  const { body } = await first.request('POST', `/api/${listener}`, { key, body: { acts } });
  await first.jobIn(key, body.job_id, 'waiting');

  first.signal('SIGKILL');
  await first.exit;
  const second = await startProcess(dataDir, environment);
  const delivered = await send(second, 1);
  await send(second, 2);
  second.signal('SIGKILL');
  await second.exit;
  const third = await startProcess(dataDir, environment);
  onTestFinished(() => third.stop());
  await send(third, 3);
  const ended = await third.jobIn(key, body.job_id, 'completed', 'failed');

  expect(delivered).toBe(1);
  expect(ended.body).toMatchObject({ status: 'completed' });
  expect(dataOf(ended.body.output.heard)).toEqual([1, 2, 3]);
});
