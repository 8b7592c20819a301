/**
 * A process that dies takes its runs with it: each has used up that attempt (docs/decisions/jobs.md), goes
 * again at the next start, or has failed with worker_lost when it was the last.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { follow } from '../support/event-stream.ts';
import { type PlatformProcess, startProcess } from '../support/process.ts';
import { acting, beginning, gate, play } from '../support/staged.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const staged = join(import.meta.dirname, '../fixtures/skills/staged');

let dataDir: string;
let platform: PlatformProcess;
let tenant: Tenant;
// One for all tests: each of them starts it again.
beforeAll(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'skillwright-crash-'));
  platform = await start();
});
beforeEach(async () => {
  tenant = await newTenant(platform);
});
afterAll(async () => {
  await platform.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const start = () =>
  startProcess(dataDir, { EXECUTORS: '1', SKILLS_DIR: staged, RETRY_BACKOFF_MS: '10' });

/** kill -9, and the next start. */
async function crash(): Promise<void> {
  platform.signal('SIGKILL');
  await platform.exit;
  platform = await start();
}

const get = (path: string) => platform.request('GET', path, { key: tenant.key });

describe('a skill that a run calls', () => {
  test('charges once over a retry and over kill -9', async () => {
    const end = gate();
    const ledger = join(dataDir, 'ledger');
    const lines = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8') : '');
    const jobId = await tenant.start('staged/v1.0/order-paid', { ledger, gate: end.path });
    await waitFor(async () => (await tenant.jobIn(jobId, 'active')).body.attempt === 2, {
      describe: 'the second attempt',
    });
    expect(lines()).toBe('5\n5\n');

    await crash();
    end.open();

    const { body } = await platform.jobIn(tenant.key, jobId, 'completed', 'failed');
    const charge = { charged: 5 };
    expect(body).toMatchObject({ attempt: 3, output: { charges: [charge, charge] } });
    expect(lines()).toBe('5\n5\n');
    const steps = await get(`/api/jobs/${jobId}/steps`);
    expect(steps.body.data).toMatchObject(
      [1, 2].map((step) => ({
        step,
        kind: 'skill',
        name: 'staged/v1.0/charge',
        status: 'completed',
      })),
    );
  });
});

describe('kill -9 while a job is active', () => {
  test('uses up that attempt, and the job runs again at the next start', async () => {
    const [begun, end] = [beginning(), gate()];
    const steps = [{ message: ['assistant', 'once'] as const }, begun.step, { until: end.path }];
    const jobId = await tenant.start(play, { attempts: [steps], output: 'done' });
    await begun.shown();

    await crash();
    end.open();

    const { body } = await platform.jobIn(tenant.key, jobId, 'completed', 'failed');
    expect(body).toMatchObject({ status: 'completed', output: 'done', attempt: 2, error: null });
    const messages = await get(`/api/conversations/${body.conversation_id}/messages`);
    // What the lost attempt said is not kept beside what the second one said.
    expect(messages.body.map(({ role }: { role: string }) => role)).toEqual([
      ...['user', 'assistant', 'assistant'],
    ]);
  });

  test('fails it with worker_lost when the attempt was its last', async () => {
    const [begun, end] = [beginning(), gate()];
    const input = acting(begun.step, { until: end.path });
    const jobId = await tenant.start('staged/v1.0/play-once', input);
    await begun.shown();

    await crash();

    const { body } = await platform.jobIn(tenant.key, jobId, 'completed', 'failed');
    expect(body).toMatchObject({
      status: 'failed',
      attempt: 1,
      output: null,
      error: { code: 'worker_lost' },
    });
    const conversation = await get(`/api/conversations/${body.conversation_id}`);
    expect(conversation.body.status).toBe('failed');
  });

  test('ends one as cancelled whose cancellation was asked for', async () => {
    const [begun, end] = [beginning(), gate()];
    const jobId = await tenant.start(play, acting(begun.step, { stubbornUntil: end.path }));
    await begun.shown();
    expect((await tenant.post(`/api/jobs/${jobId}/cancel`)).status).toBe(202);

    await crash();

    const { body } = await platform.jobIn(tenant.key, jobId, 'cancelled', 'completed', 'failed');
    expect(body).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
  });

  test('is told in the event stream, which can be resumed over it', async () => {
    const end = gate();
    const steps = [{ log: 'one' }, { until: end.path }, { log: 'two' }];
    const jobId = await tenant.start(play, acting(...steps));
    const key = { 'x-api-key': tenant.key };
    const before = await follow(`${platform.url}/api/jobs/${jobId}/events`, key);
    const { id } = await before.event(({ event }) => event === 'log', 'the first line');

    await crash();
    end.open();
    const after = await follow(`${platform.url}/api/jobs/${jobId}/events`, {
      ...key,
      'last-event-id': id,
    });

    const events = await after.ended;
    expect(events.map(({ data }) => data.message ?? `${data.status} ${data.attempt}`)).toEqual([
      ...['queued 1', 'active 2', 'one', 'two', 'completed 2'],
    ]);
    expect(events[0]?.data.error).toMatchObject({ code: 'worker_lost' });
  });
});

describe('kill -9 while a job waits', () => {
  test('in the queue or for its next attempt costs it nothing', async () => {
    await platform.stop();
    const environment = { EXECUTORS: '1', SKILLS_DIR: staged };
    platform = await startProcess(dataDir, {
      ...environment,
      WORKER_CONCURRENCY: '1',
      RETRY_BACKOFF_MS: '1000',
    });
    const { key } = tenant;
    const end = gate();
    const fail = [{ fail: { message: 'not yet' } }];
    const post = async (skill: string, body: unknown) =>
      (await platform.request('POST', `/api/${skill}`, { key, body })).body.job_id as string;
    const waiting = await post(play, { attempts: [fail, []], output: 1 });
    await platform.jobIn(key, waiting, 'queued');
    await post(play, acting({ until: end.path }));
    const queued = await post('util/v1.0/echo', { text: 'x' });

    await crash();
    end.open();

    const first = await platform.jobIn(key, waiting, 'completed', 'failed');
    const second = await platform.jobIn(key, queued, 'completed', 'failed');
    expect(first.body).toMatchObject({ status: 'completed', attempt: 2 });
    expect(second.body).toMatchObject({ status: 'completed', attempt: 1 });
  });
});
