import { expect, test } from 'vitest';
import { callsAtATime, inParallel } from './in-parallel.ts';

const { signal } = new AbortController();
const numbers = Array.from({ length: 20 }, (_, i) => i);

/** Calls that the test ends. */
function heldCalls() {
  const held = new Map<number, PromiseWithResolvers<string>>();
  const work = (item: number) => {
    const call = Promise.withResolvers<string>();
    held.set(item, call);
    return call.promise;
  };
  return { held, work, begun: () => [...held.keys()] };
}

/** Waits until all calls that can start have started. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

test('results come in the order of the items, however long each takes', async () => {
  const { held, work } = heldCalls();

  const results = inParallel([0, 1, 2], signal, work);
  for (const item of [2, 0, 1]) held.get(item)?.resolve(`result ${item}`);

  expect(await results).toEqual(['result 0', 'result 1', 'result 2']);
});

test('four run at a time, and the next begins when one has ended', async () => {
  const { held, work, begun } = heldCalls();

  const results = inParallel(numbers, signal, work);
  expect(begun()).toEqual([0, 1, 2, 3]);
  expect(callsAtATime).toBe(4);
  held.get(2)?.resolve('done');
  await settled();

  expect(begun()).toEqual([0, 1, 2, 3, 4]);
  for (const item of numbers) {
    held.get(item)?.resolve('done');
    await settled();
  }
  expect(await results).toHaveLength(20);
});

test('after a failure no call starts, active calls end, and the first failure is thrown', async () => {
  const { held, work, begun } = heldCalls();
  const failure = new Error('first');
  let isOver = false;

  const results = inParallel(numbers, signal, work);
  const over = results.catch(() => undefined).then(() => (isOver = true));
  held.get(1)?.reject(failure);
  await settled();
  held.get(0)?.resolve('paid for');
  held.get(2)?.reject(new Error('second'));
  await settled();
  expect(isOver).toBe(false);
  held.get(3)?.resolve('paid for');
  await over;

  await expect(results).rejects.toBe(failure);
  expect(begun()).toEqual([0, 1, 2, 3]);
});

test('after the signal no call starts, and its reason is thrown', async () => {
  const run = new AbortController();
  const { held, work, begun } = heldCalls();
  const reason = new Error('cancelled');

  const results = inParallel(numbers, run.signal, work);
  run.abort(reason);
  for (const call of held.values()) call.resolve('done');

  await expect(results).rejects.toBe(reason);
  expect(begun()).toEqual([0, 1, 2, 3]);
});

test('nothing to do is done at once', async () => {
  expect(await inParallel([], signal, () => Promise.reject(new Error('never')))).toEqual([]);
});
