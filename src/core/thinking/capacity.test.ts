import { expect, test } from 'vitest';
import { Capacity } from './capacity.ts';

const { signal } = new AbortController();

/** Takes amounts; those that were given so far, by name. */
function taking(capacity: Capacity) {
  const given: string[] = [];
  const releases = new Map<string, () => void>();
  const take = (name: string, organization: string, amount: number, by = signal) =>
    void capacity.take(amount, organization, by).then(
      (release) => {
        given.push(name);
        releases.set(name, release);
      },
      () => given.push(`not ${name}`),
    );
  const settled = () => new Promise(setImmediate).then(() => given.splice(0));
  return { take, settled, release: (name: string) => releases.get(name)?.() };
}

test('an organization has half of it at most, and others the rest', async () => {
  const { take, settled, release } = taking(new Capacity(10));

  take('a1', 'a', 3);
  take('a2', 'a', 3);
  take('b1', 'b', 5);
  expect(await settled()).toEqual(['a1', 'b1']);

  release('a1');
  expect(await settled()).toEqual(['a2']);
});

test('of those that wait the organization that has least is next, and its requests keep their order', async () => {
  const { take, settled, release } = taking(new Capacity(4));
  take('a1', 'a', 2);
  take('b1', 'b', 1);
  take('b2', 'b', 1);
  take('a2', 'a', 1);
  take('b3', 'b', 2);
  take('b4', 'b', 1);
  take('c1', 'c', 2);
  expect(await settled()).toEqual(['a1', 'b1', 'b2']);

  release('a1');
  expect(await settled()).toEqual(['a2']);
  release('b1');
  expect(await settled()).toEqual(['c1']);
  release('b2');
  expect(await settled()).toEqual([]);
  release('c1');
  expect(await settled()).toEqual(['b3']);
});

test('what is larger than half counts as half, and what is abandoned takes nothing', async () => {
  const { take, settled, release } = taking(new Capacity(4));
  const stop = new AbortController();
  take('large', 'a', 100);
  take('left', 'a', 1, stop.signal);
  take('next', 'a', 1);
  expect(await settled()).toEqual(['large']);

  stop.abort();
  expect(await settled()).toEqual(['not left']);
  release('large');
  release('large');
  expect(await settled()).toEqual(['next']);
});
