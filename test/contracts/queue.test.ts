/** The queue's contract, for each implementation. */
import { setTimeout as elapsed } from 'node:timers/promises';
import { queryObjects } from 'node:v8';
import { Queue as Lane } from 'bullmq';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { BullmqQueue } from '../../src/adapters/queue/bullmq.ts';
import { MemoryQueue } from '../../src/adapters/queue/memory.ts';
import type { ArrivedHint } from '../../src/adapters/queue/queue.ts';
import { Redis } from '../../src/adapters/redis/redis.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { findRedis, type RedisServer, startRedis } from '../support/redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { describeQueue } from './queue-contract.ts';

/** How many promises are still referred to. */
const promisesInMemory = () => queryObjects(Promise as never) as unknown as number;

describeQueue('the queue in memory', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let failures = 0;
  const log = createLogger('error', { write: () => void failures++ });
  return {
    queue: new MemoryQueue(log),
    delayMs: 3_600_000,
    elapse: async (ms) => void (await vi.advanceTimersByTimeAsync(ms)),
    failures: () => failures,
    async close() {
      vi.useRealTimers();
    },
  };
});

describe.skipIf(findRedis() === undefined)('on a Redis of its own', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.close());

  describeQueue('the queue in Redis', async () => {
    await server.command('FLUSHALL');
    let failures = 0;
    const log = createLogger('error', { write: () => void failures++ });
    const redis = new Redis(server.url, createLogger('silent'));
    await waitFor(() => redis.isConnected(), { describe: 'Redis is connected' });
    return {
      queue: new BullmqQueue(redis, log),
      delayMs: 400,
      elapse: (ms) => elapsed(ms),
      failures: () => failures,
      close: () => redis.close(),
    };
  });

  async function opened() {
    await server.command('FLUSHALL');
    const log = createLogger('silent');
    const redis = new Redis(server.url, log);
    onTestFinished(() => redis.close());
    await waitFor(() => redis.isConnected(), { describe: 'Redis is connected' });
    const queue = new BullmqQueue(redis, log);
    onTestFinished(() => queue.close());
    return { redis, queue };
  }

  test('an entry in the queue without a valid row id is skipped', async () => {
    const { redis, queue } = await opened();
    const foreign = new Lane('skill-execution', { connection: redis.connection() });
    onTestFinished(() => foreign.close());
    await foreign.add('another program', { id: 'not ours' });
    const handled: string[] = [];
    queue.consume('skill-execution', ({ id }) => void handled.push(id));

    queue.sendHints('skill-execution', [{ id: 'ours', generation: 0, delayMs: 0 }]);

    await waitFor(() => handled.length > 0, { describe: 'the hint is handled' });
    expect(handled).toEqual(['ours']);
  });

  test('hints of versions that send them in another format are left out', async () => {
    const { redis, queue } = await opened();
    const other = new Lane('webhooks', { connection: redis.connection() });
    onTestFinished(() => other.close());
    await other.add('hints', ['a', null, { id: 1 }, ['b']]);
    await other.add('hints', 'c');
    const handled: ArrivedHint[] = [];
    queue.consume('webhooks', (hint) => void handled.push(hint));
    await waitFor(async () => (await other.getWaitingCount()) === 0, { describe: 'all are taken' });

    queue.sendHints('webhooks', [{ id: 'd', organizationId: 'acme', generation: 0, delayMs: 0 }]);
    await waitFor(() => handled.length > 0, { describe: 'the hint is handled' });

    expect(handled).toEqual([{ id: 'd', organizationId: 'acme' }]);
  });

  test('a full Redis counts as unavailable', async () => {
    const { queue } = await opened();
    onTestFinished(async () => void (await server.command('CONFIG SET maxmemory 0')));

    await server.command('CONFIG SET maxmemory 1');
    await waitFor(() => !queue.isConnected(), { describe: 'that it takes nothing is noticed' });
    await server.command('CONFIG SET maxmemory 0');

    await waitFor(() => queue.isConnected(), { describe: 'that it does again is, too' });
  });

  test('nothing of a handled hint stays in memory', async () => {
    const { queue } = await opened();
    const handled = new Set<string>();
    queue.consume('skill-execution', ({ id }) => void handled.add(id));

    const before = promisesInMemory();
    for (let i = 0; i < 200; i++) {
      queue.sendHints('skill-execution', [{ id: `row-${i}`, generation: 0, delayMs: 0 }]);
      await waitFor(() => handled.size === i + 1, { describe: 'it is handled', everyMs: 1 });
    }

    expect(promisesInMemory() - before).toBeLessThan(100);
  });

  test('a hint waits in Redis for the next consumer, and none that a stopping one takes is lost', async () => {
    const [stopping, staying] = [await opened(), await opened()];
    const handled = new Set<string>();
    const ids = Array.from({ length: 400 }, (_, i) => `row-${i}`);
    const handler = async ({ id }: { readonly id: string }) => {
      await elapsed(1);
      handled.add(id);
    };
    for (const id of ids) {
      staying.queue.sendHints('skill-execution', [{ id, generation: 0, delayMs: 0 }]);
    }
    const consumer = stopping.queue.consume('skill-execution', handler);
    await waitFor(() => handled.size > 20, { describe: 'it has begun' });
    await consumer.stop();
    staying.queue.consume('skill-execution', handler);

    await waitFor(() => handled.size === ids.length, { describe: 'all of them are handled' });
  });
});
