import { expect, test } from 'vitest';
import { ShortLivedMap } from './short-lived-map.ts';

test('has what was set, until it is deleted', () => {
  const runs = new ShortLivedMap<number, { name: string }>();
  const first = { name: 'first' };
  runs.set(1, first);
  runs.set(2, { name: 'second' });

  expect([runs.size, runs.has(1), runs.get(1), runs.has(3), runs.get(3)]).toEqual([
    2,
    true,
    first,
    false,
    undefined,
  ]);
  expect([runs.delete(1), runs.delete(1), runs.size, runs.get(1)]).toEqual([
    true,
    false,
    1,
    undefined,
  ]);
});

test('lists its values in the order of their keys, and the last value of a key', () => {
  const runs = new ShortLivedMap<string, { n: number }>();
  runs.set('a', { n: 1 });
  runs.set('b', { n: 2 });
  runs.set('a', { n: 3 });

  expect(runs.keys()).toEqual(['a', 'b']);
  expect(runs.values()).toEqual([{ n: 3 }, { n: 2 }]);
});

test('a value that is deleted while values are looked through is still seen', () => {
  const runs = new ShortLivedMap<string, { n: number }>();
  runs.set('a', { n: 1 });
  runs.set('b', { n: 2 });

  const seen: number[] = [];
  for (const { n } of runs.values()) {
    runs.delete('b');
    seen.push(n);
  }

  expect(seen).toEqual([1, 2]);
});
