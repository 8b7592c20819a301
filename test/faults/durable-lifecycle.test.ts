/**
 * What becomes of runs that wait when something around them changes: the job is cancelled, its agent, key or skill
 * goes, the clock is set, Redis is emptied.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Act } from '../fixtures/skills/durable/play.ts';
import { type Cluster, type ClusterProcess, startCluster } from '../support/cluster.ts';
import { apiOf, canRunClusters } from '../support/cluster-load.ts';
import { durableSkills, play } from '../support/durable-platform.ts';
import { type Platform, startPlatform } from '../support/platform.ts';
import { type PlatformProcess, startProcess } from '../support/process.ts';
import { findFaketime, skewedClock } from '../support/skewed-clock.ts';
import { rounds } from '../support/soak.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { waitFor } from '../support/wait-for.ts';

const directory = mkdtempSync(join(tmpdir(), 'skillwright-lifecycle-'));
const log = join(directory, 'log');
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const ask: Act = { approve: 'ask' };
const after: Act = { step: 'after' };

describe('a job that waits', () => {
  let platform: Platform;
  let tenant: Tenant;
  beforeAll(async () => {
    platform = await startPlatform({ skillsDirs: [durableSkills] });
  });
  afterAll(() => platform?.stop());

  async function waiting(acts: readonly Act[], headers: Record<string, string> = {}) {
    tenant = await newTenant(platform);
    if (headers['x-agent-id'] !== undefined) {
      await tenant.post('/api/agents', { id: headers['x-agent-id'] });
    }
    const id = await tenant.start(play, { log, acts }, headers);
    await tenant.jobIn(id, 'waiting');
    return id;
  }
  const approvalsOf = async (id: string) =>
    (await tenant.get(`/api/approvals?job_id=${id}`)).body.data;
  const decide = async (id: string, verb: 'approve' | 'reject') => {
    const [{ approval_id }] = await approvalsOf(id);
    return await tenant.post(`/api/approvals/${approval_id}/${verb}`, {});
  };

  test('is cancelled at once, with its question and its children', async () => {
    const id = await waiting([
      { parallel: [[ask], [{ event: 'e', key: 'k' }], [{ run: 'child', acts: [ask] }]] },
    ]);
    const child = await waitFor(
      async () => (await tenant.get(`/api/jobs?parent_job_id=${id}`)).body.data[0]?.job_id,
      { describe: 'the child is there' },
    );
    await tenant.jobIn(child, 'waiting');
    await tenant.jobIn(id, 'waiting');

    const cancelled = await tenant.post(`/api/jobs/${id}/cancel`);

    expect(cancelled.status).toBe(200);
    expect(cancelled.body).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
    expect((await approvalsOf(id))[0]).toMatchObject({ status: 'cancelled' });
    expect((await decide(id, 'approve')).status).toBe(409);
    await tenant.jobIn(child, 'cancelled');
    const event = await tenant.post('/api/events', { event: 'e', key: 'k', data: null });
    expect(event.body.delivered).toBe(0);
  });

  test('is retried as a new job that asks anew', async () => {
    const id = await waiting([{ step: 'before' }, ask, after]);
    expect((await tenant.post(`/api/jobs/${id}/retry`)).status).toBe(422);
    await tenant.post(`/api/jobs/${id}/cancel`);

    const retried = (await tenant.post(`/api/jobs/${id}/retry`)).body.job_id;

    await tenant.jobIn(retried, 'waiting');
    expect((await approvalsOf(retried))[0]).toMatchObject({ status: 'pending' });
    expect((await decide(retried, 'approve')).status).toBe(200);
    expect((await tenant.jobIn(retried, 'completed')).body.output).toEqual([
      'before is done',
      true,
      'after is done',
    ]);
  });

  test('goes on although its agent is paused or its skill deprecated', async () => {
    const id = await waiting([ask, after], { 'x-agent-id': 'resting' });
    await tenant.put('/api/agents/resting', { status: 'paused' });
    await platform.admin('POST', `/admin/skills/${play}/deprecate`);

    await decide(id, 'approve');

    expect((await tenant.jobIn(id, 'completed', 'failed')).body.output).toEqual([
      true,
      'after is done',
    ]);
    await platform.admin('POST', `/admin/skills/${play}/activate`);
  });

  test('goes on although its agent is deleted', async () => {
    const id = await waiting([ask, after], { 'x-agent-id': 'leaving' });
    expect((await tenant.delete('/api/agents/leaving')).status).toBe(204);

    await decide(id, 'approve');

    const { body } = await tenant.jobIn(id, 'completed', 'failed');
    expect(body.output).toEqual([true, 'after is done']);
  });

  test('is cancelled with its question when its key is revoked', async () => {
    const id = await waiting([ask, after]);
    const { keyId, organization } = tenant;
    tenant = await newTenant(platform, { organization_id: organization });

    await platform.admin('DELETE', `/admin/api-keys/${keyId}`);

    const { body } = await tenant.jobIn(id, 'cancelled');
    expect(body.error.message).toMatch(/key .* was revoked/);
    expect(await approvalsOf(id)).toMatchObject([{ status: 'cancelled' }]);
  });
});

const hasCluster = await canRunClusters();
const library = findFaketime();

describe('a platform that is started again', () => {
  let platform: PlatformProcess | undefined;
  let dataDir: string;
  let key: string;
  afterEach(() => platform?.stop());

  async function start(environment: Record<string, string> = {}): Promise<PlatformProcess> {
    await platform?.stop();
    platform = await startProcess(dataDir, {
      EXECUTORS: '1',
      SKILLS_DIR: durableSkills,
      ...environment,
    });
    key ??= await platform.key();
    return platform;
  }

  async function waiting(acts: readonly Act[], environment: Record<string, string> = {}) {
    dataDir = mkdtempSync(join(directory, 'data-'));
    key = undefined as unknown as string;
    const first = await start(environment);
    const { body } = await first.request('POST', `/api/${play}`, { key, body: { log, acts } });
    await first.jobIn(key, body.job_id, 'waiting');
    return body.job_id as string;
  }

  async function approve(own: PlatformProcess, id: string): Promise<void> {
    const { body } = await own.request('GET', `/api/approvals?job_id=${id}`, { key });
    const path = `/api/approvals/${body.data[0].approval_id}/approve`;
    expect((await own.request('POST', path, { key, body: {} })).status).toBe(200);
  }

  test.skipIf(library === undefined)(
    'with its clock set forward resumes what is due by it',
    async () => {
      const id = await waiting([{ sleep: 'long', ms: 3_600_000 }, after]);

      const own = await start(skewedClock(library as string, 7_200));

      expect((await own.jobIn(key, id, 'completed', 'failed')).body.status).toBe('completed');
    },
  );

  test.skipIf(library === undefined)(
    'with its clock set back resumes a run when its wait ends, not earlier or later',
    async () => {
      const ahead = skewedClock(library as string, 7_200);
      const id = await waiting([{ step: 'before' }, ask, { sleep: 'nap', ms: 300 }, after], ahead);

      const own = await start();
      await approve(own, id);

      const { body } = await own.jobIn(key, id, 'completed', 'failed');
      expect(body.output).toEqual(['before is done', true, null, 'after is done']);
    },
  );

  test('without the skill of a waiting job fails it for good once its wait has ended', {
    timeout: 180_000,
  }, async () => {
    const id = await waiting([ask, after]);

    const own = await start({ SKILLS_DIR: mkdtempSync(join(directory, 'none-')) });
    expect((await own.request('GET', `/api/jobs/${id}`, { key })).body.status).toBe('waiting');
    await approve(own, id);

    const { body } = await waitFor(
      async () => {
        const answer = await own.request('GET', `/api/jobs/${id}`, { key });
        return answer.body.status === 'failed' ? answer : null;
      },
      { describe: 'the job has failed', deadlineMs: 150_000 },
    );
    expect(body.error.message).toContain(play);
  });
});

describe.skipIf(!hasCluster)('a cluster', () => {
  const count = rounds(30, 1_000);
  const napMs = rounds(10_000, 60_000);
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({
      api: 0,
      workers: 2,
      schedulers: 0,
      also: ['api,scheduler'],
      skillsDir: durableSkills,
      environment: { JOB_LEASE_MS: '3000' },
    });
  });
  afterAll(() => cluster?.close());

  test('a worker of which stood still past its lease changes nothing in the journal of its run', {
    timeout: 120_000,
  }, async () => {
    const tenant = await newTenant(apiOf(cluster).client);
    const heldLog = join(directory, 'held');
    writeFileSync(heldLog, '');
    const lines = () => readFileSync(heldLog, 'utf8').split('\n').slice(0, -1);
    const holders = () => lines().flatMap((line) => /^held by (\d+)/.exec(line)?.[1] ?? []);
    const faulty = 'durable/v1.0/faulty';
    const id = await tenant.start(faulty, { log: heldLog, does: 'is held in a step' });
    await waitFor(() => holders().length === 1, { describe: 'a worker holds the run' });
    const workers = cluster.of('worker');
    const still = workers.find(({ pid }) => `${pid}` === holders()[0]) as ClusterProcess;
    const other = workers.find((worker) => worker !== still) as ClusterProcess;
    still.signal('SIGSTOP');
    await waitFor(() => holders().length === 2, {
      describe: 'the other holds it',
      deadlineMs: 40_000,
    });
    writeFileSync(`${heldLog}.gate`, '');
    const ended = (await tenant.jobIn(id, 'completed', 'failed')).body;
    const steps = (await tenant.get(`/api/jobs/${id}/steps`)).body;

    still.signal('SIGCONT');

    // What it runs now, it runs after it has dealt with what its executor had told it.
    other.signal('SIGSTOP');
    const fresh = await tenant.run(play, { log, acts: [after] });
    other.signal('SIGCONT');
    expect(fresh.body.status).toBe('completed');
    expect(ended).toMatchObject({ status: 'completed', attempt: 2, output: 2 });
    expect((await tenant.get(`/api/jobs/${id}`)).body).toEqual(ended);
    expect((await tenant.get(`/api/jobs/${id}/steps`)).body).toEqual(steps);
    expect(lines().filter((line) => !line.startsWith('held'))).toEqual(['first', 'last']);
  });

  test(`whose Redis is emptied while ${count} runs wait resumes all of them`, {
    timeout: 300_000,
  }, async () => {
    const tenant = await newTenant(apiOf(cluster).client);
    const flushedLog = join(directory, 'flushed');
    const third = Math.floor(count / 3);
    const outputs = new Map<string, unknown>();
    const start = async (i: number, wait: Act, result: unknown) => {
      const input = { log: flushedLog, acts: [wait, { step: `after-${i}` }] };
      outputs.set(await tenant.start(play, input), [result, `after-${i} is done`]);
    };
    for (let i = 0; i < third; i += 1) await start(i, { event: 'word', key: `${i}` }, i);
    for (let i = third; i < 2 * third; i += 1) await start(i, ask, true);
    // Last, and long enough that all of them wait before the first has slept.
    for (let i = 2 * third; i < count; i += 1) await start(i, { sleep: 'nap', ms: napMs }, null);
    await waitFor(
      async () => (await tenant.get('/api/jobs?status=waiting&limit=1')).body.total === count,
      { describe: 'all of them wait', deadlineMs: 120_000 },
    );

    expect(await cluster.redis.command('FLUSHALL')).toBe('+OK');

    for (let i = 0; i < third; i += 1) {
      const { body } = await tenant.post('/api/events', { event: 'word', key: `${i}`, data: i });
      expect(body.delivered).toBe(1);
    }
    for (;;) {
      const { body } = await tenant.get('/api/approvals?status=pending&limit=50');
      if (body.data.length === 0) break;
      for (const { approval_id } of body.data) {
        await tenant.post(`/api/approvals/${approval_id}/approve`, {});
      }
    }
    await cluster.untilIdle();
    for (const [id, output] of outputs) {
      const { body } = await tenant.jobIn(id, 'completed', 'failed');
      expect(body).toMatchObject({ status: 'completed', attempt: 1, output });
    }
    const executed = readFileSync(flushedLog, 'utf8').trim().split('\n');
    expect(executed.map((line) => line.split(' ')[0]).toSorted()).toEqual(
      [...outputs.keys()].toSorted(),
    );
  });
});
