import { expect, test } from 'vitest';
import { type Answer, deliverAnswers } from './answer-order.ts';

test('answers of a line come in the order of their records, those without one last', () => {
  const answers: Answer[] = [
    ['answer', 1, 1, { step: 4 }],
    ['answer', 1, 2, { output: 'b', at: 20 }],
    ['refuse', 1, 3, { message: 'c', at: 10 }],
    ['answer', 2, 4, null],
    ['answer', 2, 5, { value: null, at: 15 }],
  ];
  const order: number[] = [];

  deliverAnswers(answers, ([, , ask]) => void order.push(ask));

  return new Promise(setImmediate).then(() => expect(order).toEqual([3, 5, 2, 1, 4]));
});

test('an answer has had its whole effect before the next one', async () => {
  const seen: string[] = [];
  const answers: Answer[] = [
    ['answer', 1, 1, { at: 2 }],
    ['answer', 1, 2, { at: 1 }],
  ];

  const react = async (ask: number) => {
    for (let i = 0; i < 5; i++) await null;
    seen.push(`${ask}`);
    process.nextTick(() => seen.push(`${ask} later`));
  };
  deliverAnswers(answers, ([, , ask]) => void react(ask));
  await new Promise(setImmediate);

  expect(seen).toEqual(['2', '2 later', '1', '1 later']);
});
