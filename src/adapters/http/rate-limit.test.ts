import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { manualClock } from '../../../test/support/manual-clock.ts';
import { MemoryRateLimiter, type RateDecision, windowMs } from './rate-limit.ts';

const second = 1_000;

function limiter() {
  const clock = manualClock('2026-11-20T12:00:00.000Z');
  const limiter = new MemoryRateLimiter(clock);
  return { clock, hit: (key: string, limit: number) => limiter.hit(key, limit) };
}

function times<T>(n: number, run: () => T): T[] {
  return Array.from({ length: n }, run);
}

const allowed = (decisions: readonly RateDecision[]) => decisions.filter((d) => d.allowed).length;

describe('the sliding minute', () => {
  test('N requests are allowed, then 429', () => {
    const { hit } = limiter();

    const decisions = times(5, () => hit('k', 3));

    expect(decisions.map((d) => d.allowed)).toEqual([true, true, true, false, false]);
    expect(decisions.map((d) => d.remaining)).toEqual([2, 1, 0, 0, 0]);
    expect(decisions.every((d) => d.limit === 3)).toBe(true);
  });

  test('a burst on both sides of a minute gets only what aged out', () => {
    const { clock, hit } = limiter();
    clock.advance(10 * second);
    expect(allowed(times(4, () => hit('k', 10)))).toBe(4);
    clock.advance(49 * second);
    expect(allowed(times(10, () => hit('k', 10)))).toBe(6);

    clock.advance(2 * second);
    expect(allowed(times(10, () => hit('k', 10)))).toBe(0);

    clock.advance(9 * second);
    expect(allowed(times(10, () => hit('k', 10)))).toBe(4);
  });

  test('a request counts for exactly one minute', () => {
    const { clock, hit } = limiter();
    hit('k', 1);

    clock.advance(windowMs - 1);
    expect(hit('k', 1).allowed).toBe(false);
    clock.advance(1);
    expect(hit('k', 1).allowed).toBe(true);
  });

  test('requests refused with 429 use up nothing: a client that hammers is served again on time', () => {
    const { clock, hit } = limiter();
    times(10, () => hit('k', 10));

    for (let s = 0; s < 59; s++) {
      clock.advance(second);
      expect(allowed(times(100, () => hit('k', 10)))).toBe(0);
    }
    clock.advance(second);
    expect(allowed(times(100, () => hit('k', 10)))).toBe(10);
  });

  test('another key is unaffected', () => {
    const { hit } = limiter();
    times(10, () => hit('a', 2));

    expect(hit('b', 2)).toMatchObject({ allowed: true, remaining: 1 });
  });

  test('200 requests at once at limit 100: exactly 100 are not 429', () => {
    const { hit } = limiter();

    expect(allowed(times(200, () => hit('k', 100)))).toBe(100);
  });
});

describe('the promises of a decision', () => {
  test('Retry-After is whole seconds, at least 1, after which one more request is accepted', () => {
    const { clock, hit } = limiter();
    hit('k', 1);

    clock.advance(100);
    expect(hit('k', 1).retryAfter).toBe(60);
    clock.advance(59_400);
    expect(hit('k', 1).retryAfter).toBe(1);
    clock.advance(499);
    expect(hit('k', 1)).toMatchObject({ allowed: false, retryAfter: 1 });
    clock.advance(1);
    expect(hit('k', 1).allowed).toBe(true);
  });

  test('X-RateLimit-Reset is the Unix second, rounded up, at which the oldest counted request leaves', () => {
    const { clock, hit } = limiter();
    const start = clock.now() / 1000;

    expect(hit('k', 5).reset).toBe(start + 60);
    clock.advance(300);
    expect(hit('k', 5).reset).toBe(start + 60);
    clock.advance(59_900);
    expect(hit('k', 5).reset).toBe(start + 61);
  });

  test('a limit that was lowered counts what the higher one allowed', () => {
    const { clock, hit } = limiter();
    for (let i = 0; i < 5; i++) {
      hit('k', 5);
      clock.advance(10 * second);
    }

    const refused = hit('k', 2);

    // Allowed at 0, 10, 20, 30 and 40 s; at 50 s two may be in the window, so four have to leave.
    expect(refused).toMatchObject({ allowed: false, remaining: 0, retryAfter: 40 });
    clock.advance(39_999);
    expect(hit('k', 2).allowed).toBe(false);
    clock.advance(1);
    expect(hit('k', 2).allowed).toBe(true);
  });

  test('hold whatever the times, the keys and the limits: as a model that keeps every moment', () => {
    const steps = fc.array(
      fc.record({
        wait: fc.oneof(
          fc.constant(0),
          fc.integer({ min: 0, max: 500 }),
          fc.integer({ min: 0, max: 4 * 70_000 }).map((quarters) => quarters / 4),
          fc.constantFrom(59_999, 60_000, 60_001),
        ),
        hits: fc.integer({ min: 1, max: 40 }),
        key: fc.constantFrom('a', 'b'),
        limit: fc.integer({ min: 1, max: 60 }),
      }),
      { maxLength: 40 },
    );
    fc.assert(
      fc.property(steps, fc.boolean(), (all, keepsLimit) => {
        const { clock, hit } = limiter();
        const model = new Map<string, number[]>([
          ['a', []],
          ['b', []],
        ]);
        for (const { wait, hits, key, limit: wanted } of all) {
          const limit = keepsLimit ? 30 : wanted;
          clock.advance(wait);
          for (let i = 0; i < hits; i++) {
            const now = clock.monotonic();
            const counted = (model.get(key) as number[]).filter((at) => at > now - windowMs);
            const isAllowed = counted.length < limit;
            if (isAllowed) counted.push(now);
            model.set(key, counted);

            const decision = hit(key, limit);

            expect(decision.allowed).toBe(isAllowed);
            expect(decision.remaining).toBe(Math.max(0, limit - counted.length));
            const leaves = clock.now() + (counted[0] as number) + windowMs - now;
            expect(decision.reset).toBe(Math.ceil(leaves / 1000));
            expect(decision.reset * 1000).toBeGreaterThanOrEqual(clock.now());
            expect(Number.isInteger(decision.retryAfter)).toBe(true);
            expect(decision.retryAfter).toBeGreaterThanOrEqual(1);
            if (!isAllowed) expectPromiseKept(counted, limit, now, decision.retryAfter);
          }
        }
      }),
    );
  });
});

/** After the wait one more fits, and after a second less it would not have. */
function expectPromiseKept(counted: readonly number[], limit: number, now: number, wait: number) {
  const countedAt = (moment: number) => counted.filter((at) => at > moment - windowMs).length;
  expect(countedAt(now + wait * 1000)).toBeLessThan(limit);
  if (wait > 1) expect(countedAt(now + (wait - 1) * 1000)).toBeGreaterThanOrEqual(limit);
}

describe('a step of the wall clock', () => {
  test.each([-86_400_000, -1, 1, 3_600_000])('of %i ms neither frees nor freezes a key', (step) => {
    const { clock, hit } = limiter();
    times(5, () => hit('k', 5));

    clock.jumpTo(clock.now() + step);

    const refused = hit('k', 5);
    expect(refused).toMatchObject({ allowed: false, retryAfter: 60 });
    expect(refused.reset).toBe(Math.ceil((clock.now() + windowMs) / 1000));
    clock.advance(windowMs);
    expect(hit('k', 5).allowed).toBe(true);
  });
});

describe('many hits and many keys', () => {
  test('a key of the highest limit is counted exactly', () => {
    const { clock, hit } = limiter();
    const limit = 100_000;
    for (let i = 0; i < 10; i++) {
      expect(allowed(times(limit / 10, () => hit('k', limit)))).toBe(limit / 10);
      clock.advance(5 * second);
    }
    expect(hit('k', limit)).toMatchObject({ allowed: false, retryAfter: 10 });

    clock.advance(10 * second);
    expect(allowed(times(limit, () => hit('k', limit)))).toBe(limit / 10);
    clock.advance(5 * second);
    expect(allowed(times(limit, () => hit('k', limit)))).toBe(limit / 10);
  });

  test('keys without a request in the window are forgotten: memory is bounded', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const { clock, hit } = limiter();
    const minute = (m: number) => {
      for (let k = 0; k < 5_000; k++) hit(`key ${m}.${k}`, 10);
      clock.advance(windowMs);
    };
    const used = () => {
      collect();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    for (let m = 0; m < 3; m++) minute(m);
    const before = used();

    for (let m = 3; m < 43; m++) minute(m);

    // 200,000 keys more; each would take some 400 bytes, and other tests of this process leave some.
    expect(used() - before).toBeLessThan(40_000_000);
    expect(hit('key 42.4999', 10).remaining).toBe(9);
  });

  test('a key that is in use keeps its count while others are forgotten', () => {
    const { clock, hit } = limiter();
    for (let s = 0; s < 180; s++) {
      for (let k = 0; k < 20; k++) hit(`passing ${s}.${k}`, 10);
      hit('steady', 1_000);
      clock.advance(second);
    }

    expect(hit('steady', 1_000).remaining).toBe(1_000 - 60);
  });
});
