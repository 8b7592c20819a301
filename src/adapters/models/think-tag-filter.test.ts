import { expect, test } from 'vitest';
import { cpuMsOf } from '../../../test/support/cpu-time.ts';
import { ThinkTagFilter } from './think-tag-filter.ts';

/** The answer in a text that arrives in pieces of `size` characters. */
function answerIn(text: string, size: number): string {
  const filter = new ThinkTagFilter();
  let answer = '';
  for (let at = 0; at < text.length; at += size) answer += filter.push(text.slice(at, at + size));
  return answer + filter.end();
}

test.each([
  ['<think>Hm.</think>Yes.', 'Yes.'],
  ['\n <think>\nHm. < </thin </think>\n\n Yes. ', 'Yes. '],
  ['<think></think>\n', ''],
  ['<think>a</think><think>b</think>', '<think>b</think>'],
  ['Yes. <think>Hm.</think>', 'Yes. <think>Hm.</think>'],
  ['<thing>', '<thing>'],
  [' <thi', ' <thi'],
  ['<think>Hm.', '<think>Hm.'],
  ['', ''],
  [' \n', ' \n'],
  [`${' '.repeat(200)}Yes.`, `${' '.repeat(200)}Yes.`],
])('of %j the answer is %j', (text, answer) => {
  for (const size of [1, 2, 3, 7, 1_000]) expect(answerIn(text, size)).toBe(answer);
});

test('text that cannot be a think tag is passed on at once', () => {
  const filter = new ThinkTagFilter();

  expect(['<', 'b', '>'].map((delta) => filter.push(delta))).toEqual(['', '<b', '>']);
});

test('the work for each piece does not grow with the length of the reasoning', async () => {
  const filter = new ThinkTagFilter();
  const tookMs = await cpuMsOf(() => {
    for (let n = 0; n < 1_000_000; n += 1) filter.push(n === 0 ? '<think>' : 'Hm. ');
  });

  expect(filter.push('</think>Yes.')).toBe('Yes.');
  expect(tookMs).toBeLessThan(5_000);
});
