import { describe, expect, test } from 'vitest';
import { keptSlots, mayBegin, mayKeepHint } from './fair-share.ts';

const slots = 100;

/** Lets organizations with endless work begin runs in turn until none may; returns how many each has. */
function fill(organizations: number, running: number[] = []): number[] {
  const own = Array.from({ length: organizations }, (_, i) => running[i] ?? 0);
  for (let hasBegun = true; hasBegun; ) {
    hasBegun = false;
    own.forEach((mine, i) => {
      const taken = own.reduce((sum, n) => sum + n, 0);
      if (!mayBegin({ slots, taken, own: mine, othersWait: organizations > 1 })) return;
      own[i] = mine + 1;
      hasBegun = true;
    });
  }
  return own;
}

describe('slots', () => {
  test('all belong to an organization that is alone', () => {
    expect(fill(1)).toEqual([100]);
  });

  test('are shared equally by organizations that all have work, and some stay free', () => {
    expect(fill(2)).toEqual([33, 33]);
    expect(fill(3)).toEqual([25, 25, 25]);
  });

  test('that are all taken leave the kept ones to organizations that run nothing', () => {
    const others = Array.from({ length: 10 }, () => 0);

    const [first, ...rest] = fill(11, [100, ...others]);

    expect(first).toBe(100);
    expect(rest.filter((own) => own === 1)).toHaveLength(keptSlots(slots));
    expect(rest.filter((own) => own > 1)).toEqual([]);
  });

  test('of an organization that has more than its share come back to the others as its runs end', () => {
    const [, second] = fill(2, [60, 1]);

    expect(second).toBe(20);
    expect(mayBegin({ slots, taken: 60 + 20, own: 60, othersWait: true })).toBe(false);
    expect(mayBegin({ slots, taken: 60 + 20, own: 60, othersWait: false })).toBe(true);
  });

  test('of which there is one run one job at a time', () => {
    expect(mayBegin({ slots: 1, taken: 0, own: 0, othersWait: true })).toBe(true);
    expect(mayBegin({ slots: 1, taken: 1, own: 0, othersWait: true })).toBe(false);
    expect(mayBegin({ slots: 1, taken: 1, own: 0, othersWait: false })).toBe(false);
  });

  test.each([2, 3, 7, 100])(
    'of %d, some organization may always begin when all runs have ended',
    (n) => {
      expect(mayBegin({ slots: n, taken: 0, own: 0, othersWait: true })).toBe(true);
      expect(mayBegin({ slots: n, taken: n, own: 0, othersWait: true })).toBe(true);
      expect(mayBegin({ slots: n, taken: n, own: n, othersWait: false })).toBe(false);
    },
  );
});

describe('hints', () => {
  const max = 1_000;

  test('fill all places when one organization sends them', () => {
    expect(mayKeepHint({ max, kept: 999, own: 999, organizations: 1 })).toBe(true);
    expect(mayKeepHint({ max, kept: 1_000, own: 1_000, organizations: 1 })).toBe(false);
  });

  test('of an organization with less than its share are kept in full places, up to twice as many', () => {
    expect(mayKeepHint({ max, kept: 1_000, own: 0, organizations: 1 })).toBe(true);
    expect(mayKeepHint({ max, kept: 1_333, own: 333, organizations: 2 })).toBe(true);
    expect(mayKeepHint({ max, kept: 1_334, own: 334, organizations: 2 })).toBe(false);
    expect(mayKeepHint({ max, kept: 2_000, own: 0, organizations: 9 })).toBe(false);
  });
});
