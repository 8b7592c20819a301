import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { TimeLimit } from './time-limit.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

test('the time that stands still does not count', () => {
  const limit = new TimeLimit(1_000);
  limit.resume();
  vi.advanceTimersByTime(600);
  limit.pause();
  vi.advanceTimersByTime(60_000);
  limit.resume();
  limit.resume();
  vi.advanceTimersByTime(399);
  expect(limit.signal.aborted).toBe(false);
  vi.advanceTimersByTime(1);
  expect(limit.signal.aborted).toBe(true);
});
