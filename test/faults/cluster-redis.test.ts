/**
 * Redis stopped, killed, emptied, frozen, out of memory, evicting keys, under load: what is accepted goes on being
 * accepted, workers go on by themselves when it is back, and nothing is lost or doubled.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import {
  apiOf,
  begunIn,
  type ClusterLoad,
  canRunClusters,
  isAcceptedSoon,
  leaseMs,
  loadCluster,
  rememberProcesses,
  twoOfEach,
  untilHealth,
  warmUp,
} from '../support/cluster-load.ts';
import { randomInteger } from '../support/random.ts';
import type { RedisServer } from '../support/redis.ts';
import { rounds } from '../support/soak.ts';
import { waitFor } from '../support/wait-for.ts';

/** From the return of Redis to workers that run what waited. */
const resumeMs = 10_000;
/** Long enough to be found out. */
const awayMs = () => randomInteger(rounds(2_500, 3_000), rounds(3_000, 5_000));
/** Of a fault that comes again and again. */
const times = rounds(2, 10);

describe.skipIf(!(await canRunClusters()))('a cluster whose Redis', () => {
  let cluster: Cluster;
  let expectSameProcesses: () => void;
  beforeAll(async () => {
    cluster = await startCluster(twoOfEach);
    await warmUp(cluster);
    expectSameProcesses = rememberProcesses(cluster);
  });
  afterEach(() => expectSameProcesses());
  afterAll(() => cluster?.close());

  const load = () => loadCluster(cluster);

  /** What was accepted is there, and all that was asked for was accepted without being held up. */
  async function expectNothingFelt(running: ClusterLoad): Promise<void> {
    await running.settle();
    expect(running.attempts.filter((attempt) => !isAcceptedSoon(attempt))).toEqual([]);
  }

  test('is stopped or killed, and comes back empty refuses and delays no execution', async () => {
    const running = await load();
    const killed = [cluster.redis.kill, awayMs()] as const;
    const others = [
      [cluster.redis.kill, randomInteger(0, 500)],
      [cluster.redis.stop, awayMs()],
    ] as const;
    for (const [end, downMs] of [...rounds([], [...others]), killed]) {
      await running.acceptedMore(begunIn(randomInteger(300, 2_000)));
      await end();
      await pause(downMs);
      if (downMs > 2_000) {
        await untilHealth(cluster, 503, resumeMs);
        const { text } = await apiOf(cluster).client.request('GET', '/metrics');
        expect(text).toMatch(/^service_redis_connected 0$/m);
      }
      await cluster.redis.start();
      await running.begunMore(begunIn(1_000), resumeMs);
    }
    await untilHealth(cluster, 200, resumeMs);

    await expectNothingFelt(running);
  });

  test('is flushed again and again refuses and delays no execution', async () => {
    const running = await load();
    for (let round = 0; round < times; round++) {
      await running.acceptedMore(begunIn(randomInteger(1, 700)));
      expect(await cluster.redis.command('FLUSHALL')).toBe('+OK');
    }
    await running.begunMore(begunIn(1_000), resumeMs);

    await expectNothingFelt(running);
  });

  test('drops its clients again and again refuses and delays no execution', async () => {
    const running = await load();
    for (let round = 0; round < times; round++) {
      await running.acceptedMore(begunIn(randomInteger(1, 700)));
      await cluster.redis.command('CLIENT KILL TYPE normal');
      await cluster.redis.command('CLIENT KILL TYPE pubsub');
    }
    await running.begunMore(begunIn(1_000), resumeMs);

    await expectNothingFelt(running);
  });

  test('stands still for three leases refuses and delays no execution', async () => {
    const running = await load();
    await running.acceptedMore(begunIn(1_000));
    cluster.redis.freeze();
    await untilHealth(cluster, 503, resumeMs);
    await pause(3 * leaseMs);
    cluster.redis.thaw();
    await running.begunMore(begunIn(1_000), resumeMs);
    await untilHealth(cluster, 200, resumeMs);

    await expectNothingFelt(running);
  });

  test('has no memory left refuses and delays no execution', async () => {
    const running = await load();
    await running.acceptedMore(begunIn(1_000));
    await cluster.redis.command('CONFIG SET maxmemory 1mb');
    expect(await cluster.redis.command('SET probe 1')).toMatch(/^-OOM/);
    await untilHealth(cluster, 503, resumeMs);
    await running.acceptedMore(begunIn(rounds(1_500, 3_000)));
    await cluster.redis.command('CONFIG SET maxmemory 0');
    await running.begunMore(begunIn(1_000), resumeMs);
    await untilHealth(cluster, 200, resumeMs);

    await expectNothingFelt(running);
  });

  test('evicts keys refuses and delays no execution', async () => {
    const running = await load();
    await running.acceptedMore(begunIn(1_000));
    await cluster.redis.command('CONFIG SET maxmemory-policy allkeys-lru');
    for (let round = 0; round < times; round++) {
      const before = await evictedKeys(cluster.redis);
      await cluster.redis.command(`CONFIG SET maxmemory ${await usedMemory(cluster.redis)}`);
      await waitFor(async () => (await evictedKeys(cluster.redis)) > before, {
        describe: 'keys are evicted',
        deadlineMs: resumeMs,
      });
      await running.acceptedMore(begunIn(rounds(1_500, 3_000)));
    }
    await cluster.redis.command('CONFIG SET maxmemory 0');
    await cluster.redis.command('CONFIG SET maxmemory-policy noeviction');
    await running.begunMore(begunIn(1_000), resumeMs);

    await expectNothingFelt(running);
  });
});

const usedMemory = (redis: RedisServer) => readInfo(redis, 'memory', 'used_memory');
const evictedKeys = (redis: RedisServer) => readInfo(redis, 'stats', 'evicted_keys');

/** A number of `INFO`, of which `command` gives no more than the first line. */
async function readInfo(redis: RedisServer, section: string, name: string): Promise<number> {
  const script = `return tonumber(string.match(redis.call('INFO','${section}'),'${name}:(%d+)'))`;
  return Number((await redis.command(`EVAL "${script}" 0`)).slice(1));
}
