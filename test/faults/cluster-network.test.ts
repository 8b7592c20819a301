/** What networks do, between the processes of a cluster and its stores: late, lost, half-open, refused. */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import {
  begunIn,
  canRunClusters,
  isAcceptedSoon,
  loadCluster,
  loadPerSecond,
  twoOfEach,
  untilHealth,
  warmUp,
} from '../support/cluster-load.ts';
import { rounds } from '../support/soak.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import { waitFor } from '../support/wait-for.ts';

/**
 * From the end of a fault to a cluster that accepts and runs again, dead connections found out. That takes
 * up to 12 s, on a busy machine longer; without a look for them it takes TCP many minutes.
 */
const recoveryMs = 40_000;
const faultMs = 2_000;

describe.skipIf(!(await canRunClusters()))('a cluster whose network', () => {
  let cluster: Cluster;
  let proxies: Record<'postgres' | 'redis', TcpProxy>;
  beforeAll(async () => {
    cluster = await startCluster({
      ...twoOfEach,
      proxied: true,
      // Longer than a connection that is dead takes to be found out.
      environment: { JOB_LEASE_MS: '5000' },
    });
    proxies = cluster.proxies as typeof proxies;
    await warmUp(cluster);
  });
  afterEach(async () => {
    await Promise.all(Object.values(proxies).map((proxy) => proxy.heal()));
    expect(cluster.processes.filter((process) => process.hasExited())).toEqual([]);
  });
  afterAll(() => cluster?.close());

  type Disorder = [string, (proxy: TcpProxy) => void];
  /** The hardest one of each kind: silence, connections that are dead, none to be had. */
  const hardest: Disorder[] = [
    ['away', (proxy) => proxy.hold()],
    ['forgetful of its connections', (proxy) => proxy.swallow()],
    [
      'cut and closed',
      (proxy) => {
        proxy.refuse();
        proxy.cut();
      },
    ],
  ];
  const milder: Disorder[] = [
    ['slow', (proxy) => proxy.delay(50)],
    ['narrow', (proxy) => proxy.throttle(1_000 * loadPerSecond)],
    ['closed to new connections', (proxy) => proxy.refuse()],
    ['cut', (proxy) => proxy.cut()],
  ];
  const disorders = [...hardest, ...rounds([], milder)];
  const names = disorders.map(([name]) => name).join(', ');

  test.each(['postgres', 'redis'] as const)(
    `to %s is ${names} recovers each time, and loses and doubles nothing`,
    async (store) => {
      const running = await loadCluster(cluster, { requestTimeoutMs: 5_000 });
      for (const [name, disorder] of disorders) {
        await running.acceptedMore(begunIn(500));
        disorder(proxies[store]);
        await pause(faultMs);
        await proxies[store].heal();
        const healed = performance.now();
        await waitFor(
          () => running.attempts.some(({ at, outcome }) => at > healed && outcome === 202),
          { describe: `requests are accepted after it was ${name}`, deadlineMs: recoveryMs },
        );
        await running.begunMore(begunIn(500), recoveryMs).catch((cause) => {
          throw new Error(`After it was ${name}`, { cause });
        });
      }

      await running.settle();
      if (store === 'redis')
        expect(running.attempts.filter((one) => !isAcceptedSoon(one))).toEqual([]);
      await untilHealth(cluster, 200, recoveryMs);
    },
  );
});
