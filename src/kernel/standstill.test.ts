import { expect, test } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { createStandstills } from './standstill.ts';

test('looks that are a second apart are no standstill', () => {
  const clock = manualClock();
  const isGrace = createStandstills(clock, 2_000);

  for (let i = 0; i < 10; i++) {
    clock.advance(1_000);
    expect(isGrace()).toBe(false);
  }
});

test('after a standstill there is a time of grace, and then none', () => {
  const clock = manualClock();
  const isGrace = createStandstills(clock, 2_000);
  clock.advance(60_000);

  expect(isGrace()).toBe(true);
  clock.advance(1_999);
  expect(isGrace()).toBe(true);
  clock.advance(1);
  expect(isGrace()).toBe(false);
});

test('looks that are always late have their grace every other time', () => {
  const clock = manualClock();
  const isGrace = createStandstills(clock, 2_000);

  const found = Array.from({ length: 4 }, () => {
    clock.advance(10_000);
    return isGrace();
  });

  expect(found).toEqual([true, false, true, false]);
});
