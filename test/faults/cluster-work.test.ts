/**
 * Work that one process accepts, another runs and a third is asked about: waiting, following and
 * cancelling go across processes, with Redis and, slower, without it.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { apiOf, canRunClusters, effect, stagedSkillsDir } from '../support/cluster-load.ts';
import { follow, type ReceivedEvent } from '../support/event-stream.ts';
import { isSoak } from '../support/soak.ts';
import { acting, beginning, dataDirectory, gate, play } from '../support/staged.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { newTenant, type Tenant } from '../support/tenant.ts';
import { patient, waitFor } from '../support/wait-for.ts';

describe.skipIf(!(await canRunClusters()))('across the processes of a cluster', () => {
  let cluster: Cluster;
  let tenant: Tenant;
  beforeAll(async () => {
    cluster = await startCluster({
      workers: 2,
      schedulers: 0,
      also: ['api,scheduler'],
      skillsDir: stagedSkillsDir,
      environment: { JOB_LEASE_MS: '3000' },
    });
    tenant = await newTenant(apiOf(cluster).client);
  });
  afterEach(redisReturns);
  afterAll(() => cluster?.close());

  let isRedisDown = false;
  async function redisReturns(): Promise<void> {
    if (isRedisDown) await cluster.redis.start();
    isRedisDown = false;
  }
  const redisEnds = async () => {
    isRedisDown = true;
    await cluster.redis.stop();
    await waitFor(
      async () => (await apiOf(cluster).client.request('GET', '/health')).status === 503,
      {
        describe: 'the loss of Redis is noticed',
      },
    );
  };
  const followAt = (api: number, jobId: string, lastEventId?: string, key = tenant.key) =>
    follow(`${apiOf(cluster, api).url}/api/jobs/${jobId}/events`, {
      'x-api-key': key,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    });
  const ask = (api: number, method: string, path: string, headers: Record<string, string> = {}) =>
    apiOf(cluster, api).client.request(method, path, { key: tenant.key, headers });
  /**
   * A run that the client who started it at an api waits for. That the job is on record shows that the
   * request has passed the rate limit, which needs Redis.
   */
  async function startAndWait(api: number, input: unknown) {
    const own = await newTenant(apiOf(cluster).client);
    const answer = apiOf(cluster, api).client.request('POST', `/api/${play}`, {
      key: own.key,
      body: input,
      headers: { prefer: 'wait=60' },
    });
    const jobId = await waitFor(async () => (await own.get('/api/jobs')).body.data[0]?.job_id, {
      describe: 'the job is accepted',
    });
    return { own, jobId: jobId as string, answer };
  }
  /** Input of a job that logs three lines, with a gate before the second and one before the third. */
  function threeLines() {
    const [first, second] = [gate(), gate()];
    const input = acting(
      { log: 'one' },
      { until: first.path },
      { log: 'two' },
      { until: second.path },
      { log: 'three' },
    );
    return { input, first, second };
  }
  const inOrder = (events: readonly ReceivedEvent[]) =>
    events.map(({ data }) => data.message ?? data.status);

  test('a wait at either api is answered as soon as a worker has ended the job', async () => {
    const end = gate();
    const jobIds = await Promise.all(
      Array.from({ length: 9 }, () =>
        tenant.start(play, { ...acting({ until: end.path }), output: 1 }),
      ),
    );
    for (const jobId of jobIds) await tenant.jobIn(jobId, 'active');
    const waits = jobIds.map((jobId, i) =>
      ask(i % 2, 'GET', `/api/jobs/${jobId}`, { prefer: 'wait=30' }),
    );

    const began = performance.now();
    end.open();
    const answers = await Promise.all(waits);

    expect(answers.map(({ body }) => body.status)).toEqual(jobIds.map(() => 'completed'));
    // The wait itself is of 30 s.
    expect(performance.now() - began).toBeLessThan(patient(5_000));
  });

  test('a job is followed at both apis, and a broken stream goes on at the other one', async () => {
    const { input, first, second } = threeLines();
    const jobId = await tenant.start(play, input);
    const atFirst = await followAt(0, jobId);
    const atSecond = await followAt(1, jobId);
    const one = await atFirst.event(({ data }) => data.message === 'one', 'the first line');
    atFirst.leave();
    first.open();
    const two = await atSecond.event(({ data }) => data.message === 'two', 'the second line');

    const resumed = await followAt(1, jobId, one.id);
    await resumed.event(({ id }) => id === two.id, 'the second line again');
    second.open();

    expect(inOrder(await atSecond.ended)).toEqual([
      ...['queued', 'active', 'one', 'two', 'three', 'completed'],
    ]);
    expect(inOrder(await resumed.ended)).toEqual(['two', 'three', 'completed']);
    const ids = (events: readonly ReceivedEvent[]) => events.map(({ id }) => id);
    expect(ids(atSecond.events).slice(-3)).toEqual(ids(resumed.events));
  });

  test('what became of runs is the sum over all processes, at either api', async () => {
    // Of an organization of its own: what others did is counted a moment later.
    const own = await newTenant(apiOf(cluster).client);
    const request = (api: number, method: string, path: string, body?: unknown) =>
      apiOf(cluster, api).client.request(method, path, {
        key: own.key,
        ...(body === undefined ? {} : { body }),
      });
    const jobIds: string[] = [];
    for (let i = 0; i < 40; i++) {
      const fails = { fail: { message: 'no', retryable: false } };
      const input = acting(...(i % 4 === 0 ? [fails] : []));
      jobIds.push((await request(i % 2, 'POST', `/api/${play}`, input)).body.job_id);
    }
    for (const jobId of jobIds) await own.jobIn(jobId, 'completed', 'failed');

    await waitFor(
      async () => {
        for (const api of [0, 1]) {
          const { totals, now } = (await request(api, 'GET', '/api/statistics?window=day')).body;
          expect(totals).toMatchObject({ accepted: 40, completed: 30, failed: 10 });
          expect(now).toEqual({ queued: 0, active: 0, waiting: 0, oldest_waiting_seconds: null });
        }
        return true;
      },
      { describe: 'both apis tell all 40 runs' },
    );
  });

  test('clients that follow or wait get every event while Redis is gone, once and in order', async () => {
    const { input, first, second } = threeLines();
    const { own, jobId, answer } = await startAndWait(1, input);
    const streams = [
      await followAt(0, jobId, undefined, own.key),
      await followAt(1, jobId, undefined, own.key),
    ];
    for (const stream of streams) {
      await stream.event(({ data }) => data.message === 'one', 'the first line');
    }

    await redisEnds();
    first.open();
    for (const stream of streams) {
      await stream.event(({ data }) => data.message === 'two', 'the second line, without Redis');
    }
    await redisReturns();
    second.open();

    for (const stream of streams) {
      expect(inOrder(await stream.ended)).toEqual([
        ...['queued', 'active', 'one', 'two', 'three', 'completed'],
      ]);
    }
    expect((await answer).body.status).toBe('completed');
  });

  test('the end of a job is told without Redis, too', async () => {
    const end = gate();
    const { own, jobId, answer } = await startAndWait(1, acting({ until: end.path }));
    await own.jobIn(jobId, 'active');
    const stream = await followAt(0, jobId, undefined, own.key);
    await redisEnds();

    const began = performance.now();
    end.open();

    expect((await answer).body.status).toBe('completed');
    expect(inOrder(await stream.ended).at(-1)).toBe('completed');
    expect(performance.now() - began).toBeLessThan(patient(5_000));
  });

  test('a job is accepted without Redis, waited for, and run when it is back', async () => {
    await redisEnds();

    const accepted = await apiOf(cluster, 1).client.request('POST', '/api/util/v1.0/echo', {
      key: tenant.key,
      body: { text: 'x' },
      headers: { prefer: 'wait=1' },
    });
    const refused = await ask(0, 'GET', '/api/jobs');
    await redisReturns();

    expect(accepted.status).toBe(202);
    expect(refused.status).toBe(503);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    await waitFor(async () => (await ask(0, 'GET', '/api/jobs?limit=1')).status === 200, {
      describe: 'requests are answered again',
    });
    await tenant.jobIn(accepted.body.job_id, 'completed');
  });

  test('an event is taken without Redis, and resumes its run when it is back', async () => {
    const news = { event: 'order.paid', key: 'A-17' };
    const jobId = await tenant.start('staged/v1.0/listener', { acts: [{ wait: news }] });
    await tenant.jobIn(jobId, 'waiting');
    await redisEnds();

    const { status, body } = await apiOf(cluster, 1).client.request('POST', '/api/events', {
      key: tenant.key,
      body: { ...news, data: 1 },
    });
    await redisReturns();

    expect({ status, delivered: body.delivered }).toEqual({ status: 202, delivered: 1 });
    const ended = await waitFor(
      async () => {
        const answer = await ask(0, 'GET', `/api/jobs/${jobId}`);
        return answer.body.status === 'completed' ? answer.body : null;
      },
      { describe: 'the run goes on' },
    );
    expect(ended.output).toMatchObject({ heard: [{ ...news, data: 1 }] });
  });

  test.each([
    ['one that listens to its signal', 'until'],
    ['one that listens to nothing', 'stubbornUntil'],
  ] as const)('a cancellation at one api ends the run at a worker: %s', async (_what, how) => {
    const [begun, end] = [beginning(), gate()];
    const jobId = await tenant.start(play, acting(begun.step, { [how]: end.path }));
    await begun.shown();

    const { status, body: shown } = await ask(1, 'POST', `/api/jobs/${jobId}/cancel`);
    const stopping = [202, 'active'];
    // A run that listens may have ended at the worker before the api reads the job for its response.
    const possible = how === 'until' ? [stopping, [200, 'cancelled']] : [stopping];
    expect(possible).toContainEqual([status, shown.status]);

    const began = performance.now();
    const { body } = await ask(0, 'GET', `/api/jobs/${jobId}`, { prefer: 'wait=30' });
    expect(body).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
    expect(performance.now() - began).toBeLessThan(patient(how === 'until' ? 4_000 : 10_000));
  });

  test('a cancellation reaches a worker that Redis cannot tell of it', async () => {
    const proxy = await startTcpProxy(() => cluster.redis.port);
    for (const worker of cluster.of('worker')) worker.signal('SIGSTOP');
    const cutOff = await cluster.add('worker', {
      environment: { REDIS_URL: `redis://127.0.0.1:${proxy.port}` },
    });
    try {
      const [begun, end] = [beginning(), gate()];
      const jobId = await tenant.start(play, acting(begun.step, { until: end.path }));
      await begun.shown();
      proxy.refuse();
      proxy.cut();

      expect((await ask(1, 'POST', `/api/jobs/${jobId}/cancel`)).status).toBe(202);

      const began = performance.now();
      const { body } = await ask(0, 'GET', `/api/jobs/${jobId}`, { prefer: 'wait=30' });
      expect(body).toMatchObject({ status: 'cancelled', attempt: 1 });
      expect(performance.now() - began).toBeLessThan(patient(10_000));
    } finally {
      for (const worker of cluster.of('worker')) worker.signal('SIGCONT');
      await cluster.remove(cutOff);
      proxy.close();
    }
  });

  /** A way to PostgreSQL of one process's own. */
  async function ownWay() {
    const proxy = await startTcpProxy(() => cluster.postgres.port);
    const url = new URL(cluster.databaseUrl);
    url.port = String(proxy.port);
    return { proxy, environment: { DATABASE_URL: url.href } };
  }

  test('messages stand in the order in which they were said where a clock is behind', async () => {
    const { proxy, environment } = await ownWay();
    const others = cluster.of('worker');
    for (const worker of others) await worker.kill();
    // Answers that are late tell a time that is over.
    proxy.delay(70, 'answers');
    const behind = await cluster.add('worker', { environment });
    // So does its second look at the clock; the third comes five seconds later.
    await pause(1_000);
    await proxy.heal();
    try {
      for (let i = 0; i < 20; i++) {
        const { body: job } = await tenant.run('util/v1.0/echo', { text: `${i}` });
        const { body } = await tenant.get(`/api/conversations/${job.conversation_id}/messages`);
        expect(body.map(({ role }: { role: string }) => role)).toEqual(['user', 'assistant']);
      }
    } finally {
      await cluster.remove(behind);
      for (const worker of others) await worker.start();
      proxy.close();
    }
  });

  // On each change cluster-kill.test.ts has one that stands still so long.
  test.runIf(isSoak)(
    'a worker that is cut off from PostgreSQL past its lease settles nothing',
    async () => {
      const { proxy, environment } = await ownWay();
      for (const worker of cluster.of('worker')) worker.signal('SIGSTOP');
      const cutOff = await cluster.add('worker', { environment });
      try {
        const end = gate();
        const log = `${dataDirectory()}/effects`;
        const jobId = await tenant.start(effect, { log, until: [end.path] });
        await tenant.jobIn(jobId, 'active');
        proxy.refuse();
        proxy.cut();
        for (const worker of cluster.of('worker')) worker.signal('SIGCONT');
        await waitFor(async () => (await tenant.get(`/api/jobs/${jobId}`)).body.attempt === 2, {
          describe: 'another has claimed it',
          deadlineMs: 15_000,
        });
        // Both of them end, one of them late.
        end.open();
        const { body } = await tenant.jobIn(jobId, 'completed');
        await waitFor(() => cutOff.log().includes('a result waits'), {
          describe: 'the one that is cut off has a result',
        });

        await proxy.heal();

        await waitFor(() => cutOff.log().includes('a late result was dropped'), {
          describe: 'the late result is dropped',
        });
        expect((await tenant.get(`/api/jobs/${jobId}`)).body).toEqual(body);
        expect(body).toMatchObject({ attempt: 2, output: { attempt: 2 } });
      } finally {
        for (const worker of cluster.of('worker')) worker.signal('SIGCONT');
        await proxy.heal();
        await cluster.remove(cutOff);
        proxy.close();
      }
    },
  );
});
