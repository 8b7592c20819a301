/** What networks do, between the processes of a cluster and its stores: late, lost, half-open, refused. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import {
  apiOf,
  type ClusterLoad,
  canRunClusters,
  loadCluster,
  stagedSkillsDir,
} from '../support/cluster-load.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import { waitFor } from '../support/wait-for.ts';

/** From the end of a fault to a cluster that accepts and runs again, dead connections found out. */
const recoveryMs = 12_000;
const faultMs = 4_000;

describe.skipIf(!(await canRunClusters()))('a cluster whose network', () => {
  let cluster: Cluster;
  let proxies: Record<'postgres' | 'redis', TcpProxy>;
  beforeAll(async () => {
    cluster = await startCluster({
      api: 2,
      workers: 2,
      proxied: true,
      skillsDir: stagedSkillsDir,
      environment: { JOB_LEASE_MS: '5000' },
    });
    proxies = cluster.proxies as typeof proxies;
  });
  afterEach(async () => {
    await Promise.all(Object.values(proxies).map((proxy) => proxy.heal()));
    expect(cluster.processes.filter((process) => process.hasExited())).toEqual([]);
  });
  afterAll(() => cluster?.close());

  const load = () => loadCluster(cluster, { perSecond: 20, requestTimeoutMs: 5_000 });
  const since = performance.now.bind(performance);

  /** Under this fault for a while; then heals, and holds the cluster to be well again in time. */
  async function during(running: ClusterLoad, fault: () => void): Promise<void> {
    await running.acceptedMore(10);
    fault();
    const began = since();
    await waitFor(() => since() - began > faultMs, { describe: 'the fault has lasted' });
    await Promise.all(Object.values(proxies).map((proxy) => proxy.heal()));
    const healed = since();
    await waitFor(
      () => running.attempts.some(({ at, outcome }) => at > healed && outcome === 202),
      { describe: 'requests are accepted again', deadlineMs: recoveryMs },
    );
  }

  const disorders: [string, (proxy: TcpProxy) => void][] = [
    ['is slow', (proxy) => proxy.delay(50)],
    ['is narrow', (proxy) => proxy.throttle(20_000)],
    ['is away for a while', (proxy) => proxy.hold()],
    ['forgets its connections', (proxy) => proxy.swallow()],
    ['takes no new connections', (proxy) => proxy.refuse()],
    [
      'breaks all connections and takes no new ones',
      (proxy) => {
        proxy.refuse();
        proxy.cut();
      },
    ],
  ];

  describe.each(['postgres', 'redis'] as const)('to %s', (store) => {
    test.each(disorders)('%s recovers, loses and doubles nothing', async (_what, disorder) => {
      const running = await load();

      await during(running, () => disorder(proxies[store]));

      await running.settle();
      for (const i of [0, 1]) {
        const { status } = await apiOf(cluster, i).client.request('GET', '/health');
        expect(status).toBe(200);
      }
    });

    test('breaks all connections again and again recovers, loses and doubles nothing', async () => {
      const running = await load();
      for (let i = 0; i < 10; i++) {
        await running.acceptedMore(5);
        proxies[store].cut();
      }

      await running.settle();
    });
  });
});
