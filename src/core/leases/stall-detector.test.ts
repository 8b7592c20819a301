import { expect, test } from 'vitest';
import { manualClock } from '../../../test/support/manual-clock.ts';
import { StallDetector } from './stall-detector.ts';

test('passes that are a second apart are no stall', () => {
  const clock = manualClock();
  const stalls = new StallDetector(clock, 2_000);

  for (let i = 0; i < 10; i++) {
    clock.advance(1_000);
    expect(stalls.isInGrace()).toBe(false);
  }
});

test('after a stall there is a grace period, and then none', () => {
  const clock = manualClock();
  const stalls = new StallDetector(clock, 2_000);
  clock.advance(60_000);

  expect(stalls.isInGrace()).toBe(true);
  clock.advance(1_999);
  expect(stalls.isInGrace()).toBe(true);
  clock.advance(1);
  expect(stalls.isInGrace()).toBe(false);
});

test('passes that are always late are in the grace period every other time', () => {
  const clock = manualClock();
  const stalls = new StallDetector(clock, 2_000);

  const found = Array.from({ length: 4 }, () => {
    clock.advance(10_000);
    return stalls.isInGrace();
  });

  expect(found).toEqual([true, false, true, false]);
});
