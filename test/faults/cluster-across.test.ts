/**
 * What a client sees of a cluster that it does not know to be one: it asks any api process about what
 * any worker does (issue: out of one machine; decisions 3, 6 and 13).
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Cluster, type ClusterProcess, startCluster } from '../support/cluster.ts';
import { canRunClusters, stagedSkillsDir } from '../support/cluster-load.ts';
import { follow } from '../support/event-stream.ts';
import { acting, gate, play } from '../support/staged.ts';
import { waitFor } from '../support/wait-for.ts';

describe.skipIf(!(await canRunClusters()))('through any process of a cluster', () => {
  let cluster: Cluster;
  let one: ClusterProcess;
  let other: ClusterProcess;
  let key: string;
  beforeAll(async () => {
    cluster = await startCluster({ api: 3, workers: 3, skillsDir: stagedSkillsDir });
    [one, other] = cluster.of('api') as [ClusterProcess, ClusterProcess];
    key = await one.client.key();
  });
  beforeEach(async () => {
    await waitFor(async () => (await one.client.request('GET', '/health')).body?.status === 'ok', {
      describe: 'the cluster is well',
      deadlineMs: 30_000,
    });
  });
  afterAll(() => cluster?.close());

  async function accepted(input: unknown): Promise<string> {
    const answer = await one.client.request('POST', `/api/${play}`, { key, body: input });
    expect(answer.status, answer.text).toBe(202);
    return answer.body.job_id as string;
  }

  test('a client waits for a job that was accepted by another', async () => {
    const held = gate();
    const jobId = await accepted({ ...acting({ until: held.path }), output: 'done' });

    const waiting = other.client.request('GET', `/api/jobs/${jobId}`, {
      key,
      headers: { prefer: 'wait=30' },
    });
    await one.client.jobIn(key, jobId, 'active');
    held.open();
    const begun = performance.now();
    const { status, body, headers } = await waiting;

    expect([status, body.status, body.output]).toEqual([200, 'completed', 'done']);
    expect(headers.get('preference-applied')).toBe('wait=30');
    // Told, and not found out by looking now and then.
    expect(performance.now() - begun).toBeLessThan(2_000);
  });

  test('it follows what a run says while it says it, and resumes at a third process', async () => {
    const held = gate();
    const jobId = await accepted(acting({ log: 'first' }, { until: held.path }, { log: 'second' }));
    const path = `/api/jobs/${jobId}/events`;

    const stream = await follow(`${other.url}${path}`, { 'x-api-key': key });
    const first = await stream.event(({ event }) => event === 'log', 'it says the first thing');
    stream.leave();
    held.open();
    const third = cluster.of('api')[2] as ClusterProcess;
    const rest = await follow(`${third.url}${path}`, {
      'x-api-key': key,
      'last-event-id': first.id,
    });

    const events = await rest.ended;
    expect(events.map(({ event, data }) => data.message ?? `${event} ${data.status}`)).toEqual([
      'second',
      'status completed',
    ]);
  });

  test('it cancels a run of any worker, which stops at once', async () => {
    const held = gate();
    const jobId = await accepted(acting({ until: held.path }));
    await one.client.jobIn(key, jobId, 'active');
    const begun = performance.now();

    const answer = await other.client.request('POST', `/api/jobs/${jobId}/cancel`, { key });
    const ended = await one.client.jobIn(key, jobId, 'cancelled', 'completed', 'failed');

    expect(answer.status).toBe(202);
    expect([ended.body.status, ended.body.error.code]).toEqual(['cancelled', 'cancelled']);
    expect(performance.now() - begun).toBeLessThan(5_000);
  });

  test('a key that one revokes is refused by every other within a second', async () => {
    const own = await one.client.key({ client_name: 'short-lived' });
    const listed = (await one.client.admin('GET', '/admin/api-keys')).body as {
      id: string;
      client_name: string;
    }[];
    const id = listed.find(({ client_name }) => client_name === 'short-lived')?.id;
    expect((await other.client.request('GET', '/api/skills', { key: own })).status).toBe(200);

    await one.client.admin('DELETE', `/admin/api-keys/${id}`);
    const begun = performance.now();

    await waitFor(
      async () => (await other.client.request('GET', '/api/skills', { key: own })).status === 401,
      { describe: 'the other refuses it', deadlineMs: 5_000 },
    );
    expect(performance.now() - begun).toBeLessThan(1_500);
  });

  test('a skill that one deprecates is not found at any other', async () => {
    await one.client.admin('POST', '/admin/skills/util/v1.0/echo/deprecate');

    await waitFor(
      async () =>
        (await other.client.request('POST', '/api/util/v1.0/echo', { key, body: { text: 'x' } }))
          .status === 404,
      { describe: 'the other knows', deadlineMs: 5_000 },
    );
    await other.client.admin('POST', '/admin/skills/util/v1.0/echo/activate');
    await waitFor(
      async () =>
        (await one.client.request('POST', '/api/util/v1.0/echo', { key, body: { text: 'x' } }))
          .status === 202,
      { describe: 'it is active again', deadlineMs: 5_000 },
    );
  });

  test('200 requests at once at a limit of 100 are answered 100 times', async () => {
    const limited = await one.client.key({ rate_limit: 100 });

    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) =>
        (cluster.of('api')[i % 3] as ClusterProcess).client.request('GET', '/api/skills', {
          key: limited,
        }),
      ),
    );

    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(100);
    expect(statuses.filter((status) => status === 429)).toHaveLength(100);
    const remaining = answers
      .filter(({ status }) => status === 200)
      .map(({ headers }) => Number(headers.get('x-ratelimit-remaining')));
    expect(new Set(remaining).size).toBe(100);
  });

  test('only those that have the role api serve the API, and each says what it is', async () => {
    for (const { client, role } of cluster.processes) {
      const { status } = await client.request('GET', '/api/skills', { key });
      const { text } = await client.request('GET', '/metrics');

      expect(status).toBe(role === 'api' ? 200 : 404);
      expect((await client.request('GET', '/health')).status).toBe(200);
      expect(text).toMatch(new RegExp(`service_process_info{version="[^"]+",roles="${role}"} 1`));
      expect(text).toContain('service_live_processes{role="api"} 3');
      expect(text).toContain('service_live_processes{role="worker"} 3');
      expect(text).toContain('service_live_processes{role="scheduler"} 1');
    }
  });

  describe('while Redis is away', () => {
    test('work is accepted, everything else is refused, and what was followed is told', async () => {
      const held = gate();
      const jobId = await accepted(acting({ until: held.path }));
      await one.client.jobIn(key, jobId, 'active');
      const waiting = other.client.request('GET', `/api/jobs/${jobId}`, {
        key,
        headers: { prefer: 'wait=30' },
      });
      // Admitted after it by the same process, so the wait is under way when this one is.
      const stream = await follow(`${other.url}/api/jobs/${jobId}/events`, { 'x-api-key': key });
      await stream.event(({ data }) => data.status === 'active', 'it is told of the run');
      const healthIs = (status: number) =>
        waitFor(async () => (await one.client.request('GET', '/health')).status === status, {
          describe: `/health is ${status}`,
          deadlineMs: 20_000,
        });

      await cluster.redis.kill();
      await healthIs(503);
      const begun = performance.now();
      const during = await accepted(acting());
      expect(performance.now() - begun).toBeLessThan(2_000);
      const refused = await one.client.request('GET', '/api/skills', { key });
      expect([refused.status, refused.body.error]).toEqual([503, 'service_unavailable']);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      held.open();

      expect((await stream.ended).at(-1)?.data.status).toBe('completed');
      expect((await waiting).body.status).toBe('completed');
      await cluster.redis.start();
      await healthIs(200);
      const back = performance.now();
      await one.client.jobIn(key, during, 'completed');
      expect(performance.now() - back).toBeLessThan(10_000);
    });

    test('a cancellation reaches the worker all the same', async () => {
      const held = gate();
      const jobId = await accepted(acting({ until: held.path }));
      await one.client.jobIn(key, jobId, 'active');
      // Asked for in the way that a process does which cannot tell anybody.
      await cluster.sql('update jobs set cancel_requested_at = 1 where id = $1', [jobId]);
      const begun = performance.now();

      await one.client.jobIn(key, jobId, 'cancelled');

      expect(performance.now() - begun).toBeLessThan(5_000);
    });
  });

  describe('/health tells the truth', () => {
    test('degraded when the workers are dead while work waits, ok again when one is back', async () => {
      const workers = cluster.of('worker');
      await Promise.all(workers.map((worker) => worker.kill()));
      const jobId = await accepted(acting());

      await waitFor(
        async () => (await one.client.request('GET', '/health')).body?.status === 'degraded',
        { describe: 'it is degraded', deadlineMs: 30_000 },
      );
      expect((await one.client.request('GET', '/health')).status).toBe(200);
      await Promise.all(workers.map((worker) => worker.start()));

      await one.client.jobIn(key, jobId, 'completed');
    });
  });
});
