import { expect, test } from 'vitest';
import { PlatformError } from './errors.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';

const unavailable = new PlatformError('service_unavailable', 'The database is away');

/** Work that fails with `error` before the try `succeedsAt`. */
function failing(error: Error, succeedsAt: number) {
  const tried: number[] = [];
  const work = async (tries: number) => {
    tried.push(tries);
    if (tries < succeedsAt) throw error;
    return 'done';
  };
  return { tried, work };
}

test('work is done again while the database is unavailable', async () => {
  const { tried, work } = failing(unavailable, 3);
  const asked: number[] = [];
  const mayRetry = (tries: number) => asked.push(tries) > 0;

  expect(await retryWhileUnavailable(work, 1, mayRetry)).toBe('done');

  expect(tried).toEqual([1, 2, 3]);
  expect(asked).toEqual([1, 2]);
});

test('when it may not be done again, its error is thrown', async () => {
  const { tried, work } = failing(unavailable, 9);

  const result = retryWhileUnavailable(work, 1, (tries) => tries < 3);

  await expect(result).rejects.toBe(unavailable);
  expect(tried).toEqual([1, 2, 3]);
});

test('any other error is thrown at once', async () => {
  const { tried, work } = failing(new PlatformError('not_found', 'Nothing there'), 2);

  await expect(retryWhileUnavailable(work, 1, () => true)).rejects.toThrow('Nothing there');
  expect(tried).toEqual([1]);
});
