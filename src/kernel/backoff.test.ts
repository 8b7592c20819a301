import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { delayAfter } from './backoff.ts';

const hour = 3_600_000;
const direct = { baseMs: 1_000, maxMs: hour };

describe('exponential backoff', () => {
  test.each([
    [1, 1_000],
    [2, 2_000],
    [3, 4_000],
    [4, 8_000],
    [12, 2_048_000],
    [13, hour],
    [5_000, hour],
  ])('after %i failed attempts the wait is 1 s × 2ⁿ, at most an hour: %i ms', (attempt, ms) => {
    expect(delayAfter(direct, attempt, 0)).toBe(ms);
  });

  test('jitter takes away up to a fifth', () => {
    expect(delayAfter(direct, 1, 0.5)).toBe(900);
    expect(delayAfter(direct, 1, 0.999_999)).toBe(800);
  });

  test('whatever is asked, the wait is whole, lies within a fifth of the full one and has an end', () => {
    const backoffs = fc.record({
      baseMs: fc.integer({ min: 1, max: hour }),
      maxMs: fc.integer({ min: 1, max: 24 * hour }),
    });
    const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(backoffs, fc.integer({ min: 1, max: 2_000 }), chance, (backoff, n, random) => {
        const full = delayAfter(backoff, n, 0);
        const delay = delayAfter(backoff, n, random);

        expect(Number.isInteger(delay)).toBe(true);
        expect(full).toBe(Math.min(backoff.maxMs, backoff.baseMs * 2 ** (n - 1)));
        expect(delay).toBeLessThanOrEqual(full);
        expect(delay).toBeGreaterThanOrEqual(Math.floor(full * 0.8));
      }),
    );
  });
});
