import { expect, test } from 'vitest';
import { gatesOf, placesOf, waitingFor } from './gates.ts';
import { countsAtMost, countsUntil, windowOf } from './rates.ts';

const work = {
  skill_category: 'web',
  skill_version: 'v1.0',
  skill_name: 'get',
  organization_id: 'acme',
  agent_id: 'a',
  api_key_id: 'k',
  user_id: 'u',
  concurrency_key: 'rate of x = 5 y 7',
};
const limits = [
  { limit: 1, per: 'platform' },
  { limit: 2, per: 'platform', perSeconds: 1 },
  { limit: 3, per: 'platform', perSeconds: 60 },
  { limit: 4, per: 'client-key', perSeconds: 60 },
  { limit: 5, per: 'client-key' },
] as const;

test('the gate of each limit of a skill names it in words, has its places and its window', () => {
  const gates = gatesOf(limits, work);

  const places = gates.map(({ name }) =>
    placesOf(name, new Map([['web/v1.0/get', limits]]), new Map()),
  );

  expect(new Set(gates.map(({ name }) => name)).size).toBe(5);
  expect(places).toEqual([1, 2, 3, 4, 5]);
  expect(gates.map(({ name }) => windowOf(name))).toEqual([null, 1_000, 60_000, 60_000, null]);
  expect(gates.map(({ name }) => waitingFor(name))).toEqual([
    'concurrency of web/v1.0/get',
    'rate of web/v1.0/get',
    'rate of web/v1.0/get',
    'rate of web/v1.0/get per client-key',
    'concurrency of web/v1.0/get per client-key',
  ]);
});

test.each([1_000, 7_000, 60_000, 86_400_000])(
  'a start counts for a window of %i ms, and at most a fiftieth longer',
  (windowMs) => {
    for (const now of [0, 1, 999, 123_456_789]) {
      const until = countsUntil(now, 50, windowMs);

      expect(until).toBeGreaterThanOrEqual(now + 50 + windowMs);
      expect(until).toBeLessThan(now + 50 + windowMs + windowMs / 50);
      expect(until).toBeLessThanOrEqual(countsAtMost(now, 50, windowMs));
    }
  },
);
