import { expect, test } from 'vitest';
import { createEstimates } from './estimates.ts';

test('without reports the estimate is three quarters of the size, rounded up', () => {
  const { tokens } = createEstimates();

  expect([tokens('a/b', 400), tokens('a/b', 1)]).toEqual([300, 1]);
});

test('a report is used with a margin of a tenth, for its model alone', () => {
  const { tokens, learn } = createEstimates();

  learn('a/b', 1_000, 200);

  expect([tokens('a/b', 1_000), tokens('a/c', 1_000)]).toEqual([220, 750]);
});

test('the largest of the last twenty reports is used', () => {
  const { tokens, learn } = createEstimates();

  learn('a/b', 1_000, 500);
  for (let i = 0; i < 19; i++) learn('a/b', 1_000, 100);
  expect(tokens('a/b', 1_000)).toBe(550);

  learn('a/b', 1_000, 100);
  expect(tokens('a/b', 1_000)).toBe(110);
});

test('absurd ratios are bounded, and a report of zero is ignored', () => {
  const { tokens, learn } = createEstimates();

  learn('a/b', 1_000, 0);
  expect(tokens('a/b', 1_000)).toBe(750);
  learn('a/b', 1, 1_000_000);
  expect(tokens('a/b', 1_000)).toBe(3_300);
});
