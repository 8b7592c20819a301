import { expect, test } from 'vitest';
import { createReplayOrder } from './replay-order.ts';

const turnOfLoop = () => new Promise(setImmediate);

test('answers from the record are given once all questions are decided, in the order of the record', async () => {
  const order = createReplayOrder();
  const given: string[] = [];
  const [a, b, c] = [order.enter(), order.enter(), order.enter()];

  void a.recorded(30).then(() => given.push('a'));
  void b.recorded(10).then(() => given.push('b'));
  await turnOfLoop();
  expect(given).toEqual([]);

  c.notRecorded();
  c.notRecorded();
  a.notRecorded();
  await turnOfLoop();
  expect(given).toEqual(['b', 'a']);
});

test('a question that comes alone is answered at once', async () => {
  const order = createReplayOrder();
  order.enter().notRecorded();
  await order.enter().recorded(1);
  await order.enter().recorded(0);
});
