import { describe, expect, test } from 'vitest';
import { manualClock } from '../../test/support/manual-clock.ts';
import { ShortCache } from './short-cache.ts';

function cache(max = 3) {
  const clock = manualClock();
  return { clock, cached: new ShortCache<string>(clock, 1_000, max) };
}

describe('what was read', () => {
  test('is believed for its time and no longer', async () => {
    const { clock, cached } = cache();
    expect(cached.get('a')).toBeUndefined();

    expect(await cached.read('a', async () => 'x')).toBe('x');

    expect(cached.get('a')).toBe('x');
    clock.advance(999);
    expect(cached.get('a')).toBe('x');
    clock.advance(1);
    expect(cached.get('a')).toBeUndefined();
  });

  test.each([-3_600_000, 3_600_000])(
    'is believed for its time whatever the wall clock does: %i ms',
    async (step) => {
      const { clock, cached } = cache();
      await cached.read('a', async () => 'x');

      clock.jumpTo(clock.now() + step);

      expect(cached.get('a')).toBe('x');
      clock.advance(1_000);
      expect(cached.get('a')).toBeUndefined();
    },
  );

  test('is not believed once it was forgotten', async () => {
    const { cached } = cache();
    await cached.read('a', async () => 'x');

    cached.forget('a');
    cached.forget('never known');

    expect(cached.get('a')).toBeUndefined();
  });

  test('is not kept when it was forgotten while it was read', async () => {
    const { cached } = cache();
    const gate = Promise.withResolvers<string>();

    const reading = cached.read('a', () => gate.promise);
    cached.forget('a');
    gate.resolve('stale');

    expect(await reading).toBe('stale');
    expect(cached.get('a')).toBeUndefined();
  });

  test('replaces what was known, also when it is an error: that is passed on and not kept', async () => {
    const { cached } = cache();
    await cached.read('a', async () => 'x');
    await cached.read('a', async () => 'y');
    expect(cached.get('a')).toBe('y');

    await expect(cached.read('b', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(cached.get('b')).toBeUndefined();
  });

  test('is bounded: the oldest goes first, and reading again makes young', async () => {
    const { cached } = cache(3);
    for (const key of ['a', 'b', 'c', 'a', 'd', 'e']) await cached.read(key, async () => key);

    expect(['a', 'b', 'c', 'd', 'e'].map((key) => cached.get(key))).toEqual([
      'a',
      undefined,
      undefined,
      'd',
      'e',
    ]);
  });
});
