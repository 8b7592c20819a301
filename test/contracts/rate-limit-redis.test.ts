/** The limit that processes share (specification: Limits), on a real Redis by its own clock. */
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import {
  MemoryRateLimiter,
  type RateDecision,
  type RateLimiter,
} from '../../src/adapters/http/rate-limit.ts';
import { RedisRateLimiter } from '../../src/adapters/http/rate-limit-redis.ts';
import { Redis } from '../../src/adapters/redis/redis.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { findRedis, type RedisServer, startRedis } from '../support/redis.ts';
import { patient, waitFor } from '../support/wait-for.ts';

const log = createLogger('silent');
const minute = 60_000;

describe.skipIf(findRedis() === undefined)('the limit over processes', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  beforeEach(async () => {
    await server.command('FLUSHALL');
  });
  afterAll(() => server.close());

  /** As one process of `processes` has it. */
  async function limiter(processes = 1): Promise<RateLimiter & { redis: Redis }> {
    const redis = new Redis(server.url, log);
    onTestFinished(() => redis.close());
    await waitFor(() => redis.isConnected(), { describe: 'Redis is connected' });
    const local = new MemoryRateLimiter(systemClock);
    const made = new RedisRateLimiter(redis, local, () => processes, log);
    return { hit: (...hit) => made.hit(...hit), giveBack: (key) => made.giveBack(key), redis };
  }

  /** The moments of a key's hits, each moved by so many milliseconds. */
  async function shiftWindow(redis: Redis, key: string, ms: number): Promise<void> {
    const name = `rate-limit:${key}`;
    const entries = await redis.commands.zrange(name, '0', '-1', 'WITHSCORES');
    for (let i = 0; i < entries.length; i += 2) {
      await redis.commands.zincrby(name, ms * 1000, entries[i] as string);
    }
  }

  async function loseRedis(redis: Redis): Promise<void> {
    await server.kill();
    onTestFinished(() => server.start());
    await waitFor(() => !redis.isConnected(), { describe: 'it is noticed' });
  }

  test('accepts exactly the limit, from several processes at once', async () => {
    const three = await Promise.all([limiter(), limiter(), limiter()]);

    const decisions = await Promise.all(
      Array.from({ length: 300 }, (_, i) => three[i % 3]?.hit('key', 100)),
    );

    const allowed = decisions.filter((decision) => decision?.allowed);
    expect(allowed).toHaveLength(100);
    expect(allowed.map((one) => one?.remaining).toSorted((a, b) => Number(a) - Number(b))).toEqual(
      Array.from({ length: 100 }, (_, i) => i),
    );
    for (const refused of decisions.filter((decision) => !decision?.allowed)) {
      expect(refused).toMatchObject({ limit: 100, remaining: 0 });
      expect(refused?.retryAfter).toBeGreaterThan(58);
      expect(refused?.retryAfter).toBeLessThanOrEqual(60);
    }
  });

  test('counts a hit that was given back no more', async () => {
    const { hit, giveBack } = await limiter();
    await hit('one', 2);
    await hit('one', 2);

    await giveBack('one');

    expect(await hit('one', 2)).toMatchObject({ allowed: true, remaining: 0 });
    expect(await hit('one', 2)).toMatchObject({ allowed: false });
  });

  test('counts each key for itself', async () => {
    const { hit } = await limiter();

    await hit('one', 1);

    expect(await hit('one', 1)).toMatchObject({ allowed: false });
    expect(await hit('another', 1)).toMatchObject({ allowed: true, remaining: 0 });
  });

  test('decides on hits that arrive together as on one after the other', async () => {
    const { hit } = await limiter();

    const together = await Promise.all([
      ...Array.from({ length: 3 }, () => hit('one', 2)),
      hit('another', 1),
      // The limit of the key was changed between the two.
      hit('one', 3),
      hit('another', 1),
    ]);

    expect(together.map(({ allowed, remaining }) => [allowed, remaining])).toEqual([
      [true, 1],
      [true, 0],
      [false, 0],
      [true, 0],
      [true, 0],
      [false, 0],
    ]);
    expect(together[2]?.retryAfter).toBe(60);
  });

  test('refused hits do not count', async () => {
    const { hit, redis } = await limiter();
    for (let i = 0; i < 10; i++) await hit('key', 2);

    expect(await redis.commands.zcard('rate-limit:key')).toBe(2);
  });

  test('a hit is free again a minute after it, to the millisecond, and not before', async () => {
    const { hit, redis } = await limiter();
    await hit('key', 1);

    await shiftWindow(redis, 'key', -(minute - 1_500));
    const early = await hit('key', 1);
    expect(early).toMatchObject({ allowed: false, retryAfter: 2 });
    await shiftWindow(redis, 'key', -1_500);

    expect(await hit('key', 1)).toMatchObject({ allowed: true, remaining: 0 });
  });

  test('returns the Unix second at which the oldest hit leaves the window', async () => {
    const { hit, redis } = await limiter();
    const [seconds] = (await redis.commands.time()).map(Number);
    await hit('key', 5);
    await shiftWindow(redis, 'key', -10_000);

    const { reset } = await hit('key', 5);

    expect(reset - Number(seconds)).toBeGreaterThanOrEqual(50);
    expect(reset - Number(seconds)).toBeLessThanOrEqual(52);
  });

  test('under a limit that was lowered, as many hits have to leave as are too many', async () => {
    const { hit, redis } = await limiter();
    await hit('key', 3);
    await shiftWindow(redis, 'key', -30_000);
    await hit('key', 3);
    await hit('key', 3);

    expect(await hit('key', 1)).toMatchObject({ allowed: false, remaining: 0, retryAfter: 60 });
    expect(await hit('key', 3)).toMatchObject({ allowed: false, retryAfter: 30 });
  });

  test('an idle key leaves no entry', async () => {
    const { hit, redis } = await limiter();
    await hit('key', 3);

    const ttl = await redis.commands.pttl('rate-limit:key');

    expect(ttl).toBeGreaterThan(minute - 5_000);
    expect(ttl).toBeLessThanOrEqual(minute);
  });

  describe('while Redis cannot be reached', () => {
    test('refuses with 503 rather than letting everything through', async () => {
      const { hit, redis } = await limiter();
      await loseRedis(redis);

      await expect(hit('key', 100)).rejects.toMatchObject({ code: 'service_unavailable' });
    });

    test('a hit that has to be judged is, by the share of this process', async () => {
      const { hit, redis } = await limiter(4);
      await loseRedis(redis);

      const decisions: RateDecision[] = [];
      for (let i = 0; i < 30; i++) decisions.push(await hit('key', 100, true));

      expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(25);
      expect(decisions[0]).toMatchObject({ limit: 100, remaining: 24 });
    });

    test('and a limit smaller than the number of processes still lets one hit through', async () => {
      const { hit, redis } = await limiter(4);
      await loseRedis(redis);

      expect(await hit('key', 2, true)).toMatchObject({ allowed: true });
      expect(await hit('key', 2, true)).toMatchObject({ allowed: false });
    });

    test('a hit that Redis has been asked about is answered within a few seconds', async () => {
      const { hit } = await limiter();
      server.freeze();
      onTestFinished(() => server.thaw());
      const begun = performance.now();

      expect(await hit('key', 100, true)).toMatchObject({ allowed: true });

      expect(performance.now() - begun).toBeLessThan(patient(3_000));
    });
  });
});
