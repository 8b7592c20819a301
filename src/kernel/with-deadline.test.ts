import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { withDeadline } from './with-deadline.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const never = () => new Promise<string>(() => {});

test('a value in time is returned, and no timer is left', async () => {
  expect(await withDeadline(Promise.resolve('a value'), 1_000)).toBe('a value');
  expect(await withDeadline(undefined, 1_000)).toBeUndefined();
  expect(vi.getTimerCount()).toBe(0);
});

test('without a value at the deadline the result is undefined', async () => {
  const result = withDeadline(never(), 1_000);
  let isOver = false;
  void result.then(() => {
    isOver = true;
  });

  await vi.advanceTimersByTimeAsync(999);
  expect(isOver).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(await result).toBeUndefined();
});

test('a rejection in time is passed on, a later one is ignored', async () => {
  await expect(withDeadline(Promise.reject(new Error('no')), 1_000)).rejects.toThrow('no');
  expect(vi.getTimerCount()).toBe(0);

  const failing = Promise.withResolvers<string>();
  const result = withDeadline(failing.promise, 1_000);
  await vi.advanceTimersByTimeAsync(1_000);
  failing.reject(new Error('too late'));
  expect(await result).toBeUndefined();
});
