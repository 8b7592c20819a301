import { expect, test } from 'vitest';
import { type Answer, createAnswerOrder } from './answer-order.ts';

test('answers come in the order in which they were sent, whenever they were recorded', async () => {
  const answers: Answer[] = [
    ['answer', 1, 1, { step: 4 }],
    ['answer', 1, 2, { output: 'b', at: 20 }],
    ['refuse', 1, 3, { message: 'c', at: 10 }],
    ['answer', 2, 4, null],
  ];
  const order: number[] = [];

  createAnswerOrder(([, , ask]) => void order.push(ask))(answers);
  await new Promise(setImmediate);

  expect(order).toEqual([1, 2, 3, 4]);
});

test('an answer has had its whole effect before the next one', async () => {
  const seen: string[] = [];
  const react = async (ask: number) => {
    for (let i = 0; i < 5; i++) await null;
    seen.push(`${ask}`);
    process.nextTick(() => seen.push(`${ask} later`));
  };
  const take = createAnswerOrder(([, , ask]) => void react(ask));
  take([
    ['answer', 1, 1, { at: 2 }],
    ['answer', 1, 2, { at: 1 }],
  ]);
  // Of the next line, which was read at once.
  take([['answer', 1, 3, { at: 3 }]]);
  await new Promise(setImmediate);

  expect(seen).toEqual(['1', '1 later', '2', '2 later', '3', '3 later']);
});
