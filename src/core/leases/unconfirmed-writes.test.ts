import { expect, test } from 'vitest';
import { manualClock } from '../../../test/support/manual-clock.ts';
import { PlatformError } from '../../kernel/errors.ts';
import { UnconfirmedWrites } from './unconfirmed-writes.ts';

test('a stop searches once more, so that a claim which the last search did not find is given back', async () => {
  const settled: string[] = [];
  const errors: unknown[] = [];
  const searched = Promise.withResolvers<void>();
  let isAvailable = false;
  const writes = new UnconfirmedWrites<{ id: string }, { id: string }>(
    {
      async takeCommitted(sought) {
        searched.resolve();
        if (!isAvailable) throw new PlatformError('service_unavailable', 'The database is away');
        return [...sought];
      },
      settle: ({ id }) => settled.push(id),
      onError: (error) => errors.push(error),
    },
    manualClock(),
    60_000,
  );
  writes.add([{ id: 'a' }]);
  await searched.promise;
  isAvailable = true;

  await writes.stop();

  expect(settled).toEqual(['a']);
  expect(errors).toEqual([]);
});
