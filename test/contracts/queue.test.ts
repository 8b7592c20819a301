/** The queue's contract, held by each implementation. */
import { setTimeout as elapsed } from 'node:timers/promises';
import { afterAll, beforeAll, describe, vi } from 'vitest';
import { createLogger } from '../../src/kernel/log.ts';
import { createBullmqQueue } from '../../src/queue/bullmq.ts';
import { createMemoryQueue } from '../../src/queue/memory.ts';
import { openRedis } from '../../src/redis/redis.ts';
import { findRedis, type RedisServer, startRedis } from '../support/redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { describeQueue } from './queue-contract.ts';

describeQueue('the queue in memory', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  let failures = 0;
  const log = createLogger('error', { write: () => void failures++ });
  return {
    queue: createMemoryQueue(log),
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
    const redis = openRedis(server.url, createLogger('silent'));
    await waitFor(() => redis.isConnected(), { describe: 'Redis is connected' });
    return {
      queue: createBullmqQueue(redis, log),
      delayMs: 400,
      elapse: (ms) => elapsed(ms),
      failures: () => failures,
      close: () => redis.close(),
    };
  });
});
