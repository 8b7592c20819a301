import { describe, expect, test } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { createShortCache } from './short-cache.ts';

function cache(max = 3) {
  const clock = manualClock();
  return { clock, ...createShortCache<string>(clock, 1_000, max) };
}

describe('what was read', () => {
  test('is believed for its time and no longer', async () => {
    const { clock, get, read } = cache();
    expect(get('a')).toBeUndefined();

    expect(await read('a', async () => 'x')).toBe('x');

    expect(get('a')).toBe('x');
    clock.advance(999);
    expect(get('a')).toBe('x');
    clock.advance(1);
    expect(get('a')).toBeUndefined();
  });

  test.each([-3_600_000, 3_600_000])(
    'is believed for its time whatever the wall clock does: %i ms',
    async (step) => {
      const { clock, get, read } = cache();
      await read('a', async () => 'x');

      clock.jumpTo(clock.now() + step);

      expect(get('a')).toBe('x');
      clock.advance(1_000);
      expect(get('a')).toBeUndefined();
    },
  );

  test('is not believed once it was forgotten', async () => {
    const { forget, get, read } = cache();
    await read('a', async () => 'x');

    forget('a');
    forget('never known');

    expect(get('a')).toBeUndefined();
  });

  test('is not kept when it was forgotten while it was read', async () => {
    const { forget, get, read } = cache();
    const gate = Promise.withResolvers<string>();

    const reading = read('a', () => gate.promise);
    forget('a');
    gate.resolve('stale');

    expect(await reading).toBe('stale');
    expect(get('a')).toBeUndefined();
  });

  test('replaces what was known, also when it is an error: that is passed on and not kept', async () => {
    const { get, read } = cache();
    await read('a', async () => 'x');
    await read('a', async () => 'y');
    expect(get('a')).toBe('y');

    await expect(read('b', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(get('b')).toBeUndefined();
  });

  test('is bounded: the oldest goes first, and reading again makes young', async () => {
    const { get, read } = cache(3);
    for (const key of ['a', 'b', 'c', 'a', 'd', 'e']) await read(key, async () => key);

    expect(['a', 'b', 'c', 'd', 'e'].map((key) => get(key))).toEqual([
      'a',
      undefined,
      undefined,
      'd',
      'e',
    ]);
  });
});
