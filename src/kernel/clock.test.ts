import { expect, test } from 'vitest';
import { timestamp } from './clock.ts';

test('a timestamp is the ISO 8601 text of its moment', () => {
  const seconds = [0, 1, 59, 1_795_492_800, 1_795_492_801, 4_102_444_799, -1, -86_401];
  const moments = seconds.flatMap((second) =>
    [0, 1, 9, 10, 99, 100, 999].map((ms) => second * 1000 + ms),
  );

  expect(moments.map(timestamp)).toEqual(moments.map((ms) => new Date(ms).toISOString()));
  expect([...moments].reverse().map(timestamp)).toEqual(
    [...moments].reverse().map((ms) => new Date(ms).toISOString()),
  );
  expect(timestamp(1_795_492_800_123.9)).toBe(new Date(1_795_492_800_123.9).toISOString());
  expect(() => timestamp(Number.NaN)).toThrow(RangeError);
});
