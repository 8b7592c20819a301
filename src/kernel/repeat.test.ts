import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Repeated } from './repeat.ts';

beforeEach(() => {
  const toFake = ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] as const;
  vi.useFakeTimers({ toFake: [...toFake] });
});
afterEach(() => {
  vi.useRealTimers();
});

const noError = (error: unknown) => expect.fail(String(error));

describe('what is repeated', () => {
  test('is done at once, and then at its interval until it is stopped', async () => {
    const task = vi.fn(async () => {});
    const repeated = new Repeated(100, task, noError);
    expect(task).toHaveBeenCalledTimes(1);

    await vi.advanceTimersByTimeAsync(350);
    expect(task).toHaveBeenCalledTimes(4);

    await repeated.stop();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(task).toHaveBeenCalledTimes(4);
  });

  test('may begin later, and may be stopped before it begins', async () => {
    const task = vi.fn(async () => {});
    const repeated = new Repeated(100, task, noError, 50);
    const stopped = new Repeated(100, () => expect.fail('it was stopped'), noError, 50);
    await stopped.stop();
    await vi.advanceTimersByTimeAsync(49);
    expect(task).toHaveBeenCalledTimes(0);

    await vi.advanceTimersByTimeAsync(101);
    expect(task).toHaveBeenCalledTimes(2);
    await repeated.stop();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(task).toHaveBeenCalledTimes(2);
  });

  test('never runs beside itself, and is waited for at the stop', async () => {
    const held = Promise.withResolvers<void>();
    const task = vi.fn(() => held.promise);
    const repeated = new Repeated(100, task, noError);
    await vi.advanceTimersByTimeAsync(500);
    expect(task).toHaveBeenCalledTimes(1);

    let isStopped = false;
    const stopped = repeated.stop().then(() => {
      isStopped = true;
    });
    await vi.advanceTimersByTimeAsync(0);
    expect(isStopped).toBe(false);

    held.resolve();
    await stopped;
  });

  test('runs again after a failure, which is reported', async () => {
    const errors: unknown[] = [];
    const failure = new Error('not now');
    const task = vi.fn().mockRejectedValueOnce(failure).mockResolvedValue(undefined);
    const repeated = new Repeated(100, task, (error) => errors.push(error));

    await vi.advanceTimersByTimeAsync(100);

    expect(task).toHaveBeenCalledTimes(2);
    expect(errors).toEqual([failure]);
    await repeated.stop();
  });
});
