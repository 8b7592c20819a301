/**
 * A cluster to which nothing is done, then kill -9 and SIGSTOP of its processes: what they held is taken over,
 * once.
 */
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { readEffects } from '../support/accounts.ts';
import { type Cluster, type ClusterProcess, startCluster } from '../support/cluster.ts';
import {
  apiOf,
  begunIn,
  canRunClusters,
  effect,
  leaseMs,
  loadCluster,
  twoOfEach,
  warmUp,
} from '../support/cluster-load.ts';
import { randomInteger } from '../support/random.ts';
import { beginChance, isSoak, rounds } from '../support/soak.ts';
import { dataDirectory, gate } from '../support/staged.ts';
import { newTenant } from '../support/tenant.ts';
import { patient, waitFor } from '../support/wait-for.ts';

/** Of each role in turn. */
const kills = rounds(3, 9);

describe.skipIf(!(await canRunClusters()))('a cluster', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster(twoOfEach);
    await warmUp(cluster);
  });
  afterEach(async () => {
    for (const process of cluster.processes) {
      if (process.hasExited()) await process.start();
      else process.signal('SIGCONT');
    }
  });
  afterAll(() => cluster?.close());

  /** Runs whose first and further attempts are held open, and the worker that has each. */
  async function runsHeldOpen(count: number) {
    const tenant = await newTenant(apiOf(cluster).client);
    const log = `${dataDirectory()}/effects`;
    const [end, secondEnd] = [gate(), gate()];
    const until = [end.path, secondEnd.path];
    // Where the test has failed, too: without their file they would fail twenty times, and the next test would
    // wait for them.
    onTestFinished(async () => {
      end.open();
      secondEnd.open();
      await cluster.untilIdle();
    });
    const jobIds = await Promise.all(
      Array.from({ length: count }, () => tenant.start(effect, { log, until })),
    );
    const begins = await waitFor(
      () => {
        const lines = readEffects(log);
        return lines.length >= count ? lines : null;
      },
      { describe: 'all of them run' },
    );
    const holderOf = (jobId: string): ClusterProcess => {
      const pid = begins.findLast((line) => line.jobId === jobId)?.pid;
      const holder = cluster.processes.find((process) => process.pid === pid);
      if (holder === undefined) throw new Error(`No process has the pid ${pid}.`);
      return holder;
    };
    return { tenant, log, end, secondEnd, jobIds, holderOf };
  }

  test('without faults records under load what it accepts, each once, and refuses nothing', async () => {
    const load = await loadCluster(cluster, { perSecond: 20 });
    await load.acceptedMore(rounds(50, 100));

    const account = await load.settle();

    expect(load.attempts.every(({ outcome }) => outcome === 202)).toBe(true);
    expect(account.repeated).toBe(0);
  });

  test(`whose processes are killed ${kills} times at random moments loses and doubles nothing`, {
    timeout: 180_000,
  }, async () => {
    beginChance();
    const load = await loadCluster(cluster);

    for (let kill = 0; kill < kills; kill++) {
      await load.acceptedMore(begunIn(randomInteger(1, 1_000)));
      // Each role in turn, and a random one of its processes.
      const role = (['worker', 'api', 'scheduler'] as const)[kill % 3] ?? 'worker';
      const those = cluster.of(role);
      const victim = those[randomInteger(0, those.length - 1)] as ClusterProcess;
      await victim.kill();
      await victim.start();
    }

    await load.settle();
  });

  test('has the runs of a killed worker claimed again within the lease and 5 s', async () => {
    const { tenant, log, end, secondEnd, jobIds, holderOf } = await runsHeldOpen(10);
    const victim = holderOf(jobIds[0] as string);
    const held = jobIds.filter((jobId) => holderOf(jobId) === victim);

    const began = performance.now();
    await victim.kill();

    await waitFor(
      () => {
        const lines = readEffects(log);
        return held.every((id) => lines.filter(({ jobId }) => jobId === id).length === 2);
      },
      { describe: 'they run again', deadlineMs: leaseMs + 10_000 },
    );
    expect(performance.now() - began).toBeLessThan(leaseMs + patient(5_000));
    end.open();
    secondEnd.open();
    for (const jobId of jobIds) {
      const { body } = await tenant.jobIn(jobId, 'completed', 'failed');
      const attempt = held.includes(jobId) ? 2 : 1;
      expect(body).toMatchObject({ status: 'completed', attempt, output: { attempt } });
    }
  });

  test('drops the late results of a worker that stood still past its lease', async () => {
    const { tenant, log, end, secondEnd, jobIds, holderOf } = await runsHeldOpen(10);
    const victim = holderOf(jobIds[0] as string);
    const held = jobIds.filter((jobId) => holderOf(jobId) === victim);
    const jobsNow = async () =>
      (await Promise.all(held.map((id) => tenant.get(`/api/jobs/${id}`)))).map(({ body }) => body);
    victim.signal('SIGSTOP');
    await waitFor(
      async () =>
        (await jobsNow()).every(({ status, attempt }) => status === 'active' && attempt === 2),
      { describe: 'the other has claimed them', deadlineMs: leaseMs + 10_000 },
    );
    // The executor of the one that stands still goes on, and its results wait for it.
    end.open();
    await waitFor(
      () => {
        const ends = readEffects(log).filter(({ word }) => word === 'end');
        return held.every((id) => ends.some(({ jobId }) => jobId === id));
      },
      { describe: 'the first attempts have ended' },
    );
    const before = await jobsNow();

    victim.signal('SIGCONT');

    // A run that it begins and ends now, it begins after it has dealt with those results. The other goes on: were it
    // stopped for longer than its lease, which a busy machine may do, those runs would be claimed a third time.
    await waitFor(
      async () => {
        const { body } = await tenant.run(effect, { log });
        expect(body.status).toBe('completed');
        return readEffects(log).some((one) => one.jobId === body.job_id && one.pid === victim.pid);
      },
      { describe: 'the one that stood still has run one' },
    );
    expect(await jobsNow()).toEqual(before);
    secondEnd.open();
    for (const jobId of held) {
      const { body } = await tenant.jobIn(jobId, 'completed', 'failed');
      expect(body).toMatchObject({ status: 'completed', attempt: 2, output: { attempt: 2 } });
    }
  });

  // On each change the late results above, which are what a standstill leaves.
  test.runIf(isSoak)(
    'that is stopped and continued at random moments loses and doubles nothing',
    {
      timeout: 120_000,
    },
    async () => {
      beginChance();
      const load = await loadCluster(cluster);

      for (let round = 0; round < 2; round++) {
        await load.acceptedMore(begunIn(randomInteger(1, 1_000)));
        const victim = cluster.of('worker')[round % 2] as ClusterProcess;
        victim.signal('SIGSTOP');
        await load.acceptedMore(begunIn(leaseMs + randomInteger(500, 2_500)));
        victim.signal('SIGCONT');
      }

      await load.settle();
    },
  );
});
