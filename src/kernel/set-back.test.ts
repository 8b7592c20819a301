import { describe, expect, test } from 'vitest';
import { createSetBackWatch, endOf } from './set-back.ts';

function clockAt(wall: number) {
  const state = { wall, grown: 0 };
  return { state, now: () => state.wall, monotonic: () => state.grown };
}

describe('a clock that may be set back', () => {
  test('is looked after at the start, then only when it was set back', () => {
    const clock = clockAt(1_000_000);
    const wasSetBack = createSetBackWatch(clock);
    const lookAfter = (wall: number, grown: number) => {
      clock.state.wall += wall;
      clock.state.grown += grown;
      return wasSetBack();
    };

    expect(lookAfter(0, 0)).toBe(true);
    expect(lookAfter(1_000, 1_000)).toBe(false);
    // Corrections of a clock that drifts.
    expect(lookAfter(-500, 1_000)).toBe(false);
    expect(lookAfter(50_000, 0)).toBe(false);
    expect(lookAfter(-50_000, 0)).toBe(true);
    expect(lookAfter(1_000, 1_000)).toBe(false);
  });

  test('makes no end that lies before its beginning', () => {
    expect(endOf(5_000, 7_000, 1_900)).toBe(7_000);
    expect(endOf(5_000, 1_000, 1_900.4)).toBe(6_900);
    expect(endOf(5_000, 1_000)).toBe(5_000);
    expect(endOf(null, 1_000, 5)).toBe(1_000);
  });
});
