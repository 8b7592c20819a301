import { expect, test } from 'vitest';
import { cpuMsOf } from '../../test/support/cpu-time.ts';
import { createThoughtFilter } from './leading-thought.ts';

/** What of a text belongs to the answer, however it is cut into pieces. */
function answerIn(text: string, size: number): string {
  const filter = createThoughtFilter();
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

test('text that is no thought does not wait', () => {
  const filter = createThoughtFilter();

  expect(['<', 'b', '>'].map((delta) => filter.push(delta))).toEqual(['', '<b', '>']);
});

test('what is thought for long takes no longer for each of its pieces', async () => {
  const filter = createThoughtFilter();
  const tookMs = await cpuMsOf(() => {
    for (let n = 0; n < 1_000_000; n += 1) filter.push(n === 0 ? '<think>' : 'Hm. ');
  });

  expect(filter.push('</think>Yes.')).toBe('Yes.');
  expect(tookMs).toBeLessThan(5_000);
});
