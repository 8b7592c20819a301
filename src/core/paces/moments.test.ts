import { describe, expect, test } from 'vitest';
import { begin, SimulatedPace } from '../../../test/support/simulated-pace.ts';
import { freshPace, type Refusal, refused } from './pace-rule.ts';

const refusal: Refusal = {
  begunAt: begin,
  isRateLimited: true,
  retryAfterMs: null,
  said: '',
  served: Array(8).fill(begin),
  process: 'a',
};
const eightASecond = { calls: 480, tokens: null };

interface Load {
  readonly organization: string;
  readonly calls: number;
  readonly atMs?: number;
  readonly everyMs?: number;
  readonly weight?: number;
}

/** How long the calls of each organization have waited, and when they began; runs are loaded half a second late. */
function simulated(loads: readonly Load[], pace = new SimulatedPace(freshPace, eightASecond)) {
  const waits = new Map<string, number[]>();
  const begun: number[] = [];
  const order: string[] = [];
  for (const { organization, calls, atMs = 0, everyMs = 0, weight = 1 } of loads) {
    const own: number[] = [];
    waits.set(organization, own);
    for (let i = 0; i < calls; i++) {
      const at = atMs + i * everyMs;
      pace.at(at, () => {
        const call = () => {
          own.push(pace.now - at);
          begun.push(pace.now);
          order.push(organization);
        };
        pace.ask({ organization, weight }, call, 500);
      });
    }
  }
  pace.run();
  const longest = (organization: string) => Math.max(...(waits.get(organization) ?? []));
  const leastGap = Math.min(...begun.slice(1).map((at, i) => at - (begun[i] ?? 0)));
  /** The share of an organization in the calls of some seconds. */
  const shareOf = (organization: string, from: number, to: number) => {
    const all = order.filter((_, i) => {
      const at = begun[i] ?? 0;
      return at >= from * 1_000 && at < to * 1_000;
    });
    return all.filter((one) => one === organization).length / all.length;
  };
  return { longest, end: begun.at(-1) ?? 0, leastGap, begun, order, shareOf };
}

describe('organizations that share a credential', () => {
  test('with one call begin within seconds, however many calls of another one wait', () => {
    const { longest, end, leastGap } = simulated([
      { organization: 'many', calls: 1_000 },
      { organization: 'few', calls: 5, atMs: 5_000, everyMs: 20_000 },
    ]);
    expect(longest('few')).toBeLessThan(5_000);
    expect(leastGap).toBeCloseTo(125);
    // Nothing of what the provider takes is left unused.
    expect(end).toBeLessThan(130_000);
  });

  test('go round while each of them has calls', () => {
    const { shareOf, end } = simulated([
      { organization: 'first', calls: 600 },
      { organization: 'second', calls: 150, atMs: 10_000 },
    ]);
    expect(shareOf('second', 15, 35)).toBeCloseTo(1 / 2, 1);
    expect(end).toBeLessThan(130_000);
  });

  test('go round by their weights', () => {
    const { shareOf } = simulated([
      { organization: 'light', calls: 300 },
      { organization: 'heavy', calls: 300, weight: 3 },
    ]);
    expect(shareOf('heavy', 5, 30)).toBeCloseTo(3 / 4, 1);
  });

  test('have all had a call before one has many', () => {
    const loads = Array.from({ length: 30 }, (_, i) => ({ organization: `n${i}`, calls: 10 }));
    const { order } = simulated(loads, new SimulatedPace(freshPace, { calls: 60, tokens: null }));
    // By turns 30 of them would be enough.
    expect(new Set(order.slice(0, 60)).size).toBe(30);
  });

  test('leave no moment unused once the others are gone', () => {
    const one = (name: string) => ({ organization: name, calls: 1 });
    const gone = Array.from({ length: 99 }, (_, i) => one(`n${i}`));
    const { end } = simulated(
      [...gone, { organization: 'stays', calls: 3, everyMs: 500 }],
      new SimulatedPace(freshPace, { calls: 60, tokens: null }),
    );
    expect(end).toBeLessThan(135_000);
  });

  test('begin large calls one after another while some wait, at a limit of tokens', () => {
    const tokens = 100_000;
    const pace = new SimulatedPace(freshPace, { calls: null, tokens: 2 * tokens });
    const begun: number[] = [];
    for (let i = 0; i < 8; i++) {
      const asking = { organization: `n${i}`, tokens };
      pace.ask(
        asking,
        () => {
          begun.push(pace.now);
          pace.ask(asking, () => begun.push(pace.now), 500);
        },
        500,
      );
    }
    pace.run();
    expect(begun).toHaveLength(16);
    expect(Math.max(...begun.slice(1).map((at, i) => at - (begun[i] ?? 0)))).toBeLessThan(60_000);
  });

  test('are told apart by name alone, and beyond a thousand share one turn', () => {
    const names = Array.from({ length: 1_100 }, (_, i) => `n${i}`);
    const pace = new SimulatedPace(freshPace, eightASecond);
    for (const organization of ['constructor', '__proto__', ...names]) pace.take({ organization });
    expect(pace.pace.shares.length).toBeLessThanOrEqual(1_001);
    expect(pace.pace.shares.find(({ organization }) => organization === '__proto__')).toBeDefined();
  });
});

test('calls of one organization begin in their order, at the full rate', () => {
  const pace = new SimulatedPace(freshPace, eightASecond);
  const order: number[] = [];
  for (let i = 0; i < 200; i++) pace.ask({}, () => order.push(i), 500);
  pace.run();
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(pace.now).toBeCloseTo(199 * 125, 0);
});

test('calls that wait for no moment far ahead begin at the full rate all the same', () => {
  const pace = new SimulatedPace(freshPace, { calls: 60, tokens: null });
  const ahead: number[] = [];
  for (let i = 0; i < 300; i++) {
    pace.at(3 * i, () => pace.ask({ hasWaited: true, aheadMs: 2_000 }, () => {}, 500));
  }
  pace.at(100, () => {
    for (let i = 0; i < 20; i++) {
      const { kind, at } = pace.take({ aheadMs: 2_000 });
      if (kind === 'moment') ahead.push(at - pace.now);
    }
  });
  pace.run();
  expect(Math.max(0, ...ahead)).toBeLessThanOrEqual(2_000);
  expect(pace.now).toBeLessThan(340_000);
});

test('calls that come back from a pause begin after it, at the rate that is known', () => {
  const pace = new SimulatedPace(refused(freshPace, { ...refusal, retryAfterMs: 20_000 }, begin));
  const { begun, leastGap } = simulated([{ organization: 'one', calls: 100 }], pace);
  expect(begun[0]).toBeGreaterThanOrEqual(20_000);
  expect(leastGap).toBeGreaterThan(129);
  expect(begun.at(-1)).toBeLessThan(20_000 + 100 * 135);
});

test('no call gets a moment while the calls that were refused together are counted', () => {
  const pace = new SimulatedPace(
    refused(freshPace, { ...refusal, served: Array(15).fill(begin) }, begin),
  );
  const early = pace.take();
  expect(early).toMatchObject({ kind: 'position' });
  pace.pace = refused(pace.pace, { ...refusal, served: Array(5).fill(begin) }, begin + 20);
  pace.now = early.at;

  const [first, second] = [pace.take(), pace.take()];
  expect([first.kind, second.kind]).toEqual(['moment', 'moment']);
  expect(second.at - first.at).toBeCloseTo(60_000 / (300 * 0.96));
});

test('calls that are cancelled hold up no other one of their organization', () => {
  const pace = new SimulatedPace(freshPace, eightASecond);
  for (let i = 0; i < 200; i++) pace.take();
  // None of them is made.
  pace.now = 5_000;
  expect(pace.take()).toMatchObject({ kind: 'moment', at: 5_000 });
});
