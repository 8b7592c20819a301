import { expect, test } from 'vitest';
import { trySkill } from '../../../../../test/support/try-skill.ts';
import wordCount from './word-count.ts';

test.each([
  ['', 0, 0, 0, 0],
  [' \n', 0, 2, 0, 1],
  ['one two three', 3, 13, 1, 1],
  ["Don't stop. Now!", 3, 16, 2, 1],
  ['It cost 3.50 in 2026.', 5, 21, 1, 1],
  ['one\r\ntwo\rthree\n', 3, 14, 1, 3],
  ['Hard-wrapped prose goes\non in the next line.', 9, 44, 1, 2],
  ['A heading\n\nA paragraph.', 4, 23, 2, 3],
  ['--- ... !!!', 0, 11, 0, 1],
  ['👩‍👩‍👧 🇨🇭 é', 1, 5, 1, 1],
])('%j has the right number of words, characters, sentences and lines', async (text, ...counts) => {
  const { words, characters, sentences, lines } = await trySkill(wordCount, { text });

  expect([words, characters, sentences, lines]).toEqual(counts);
});

test.each([
  ['日本語の文章です。もう一つの文です。', 'ja', 2],
  ['我喜欢读书。他也喜欢。', 'zh', 2],
  ['ฉันชอบอ่านหนังสือ', 'th', 1],
])('%s is counted without spaces between words', async (text, locale, sentences) => {
  const counted = await trySkill(wordCount, { text, locale });

  expect(counted.words).toBeGreaterThan(3);
  expect(counted.words).toBeLessThan(text.length);
  expect(counted.sentences).toBe(sentences);
});

test('reading takes a minute for 200 words, and some time for any', async () => {
  const minutes = async (words: number) =>
    (await trySkill(wordCount, { text: 'word '.repeat(words) })).reading_time_minutes;

  expect([await minutes(0), await minutes(1), await minutes(200), await minutes(450)]).toEqual([
    0, 0.1, 1, 2.3,
  ]);
});

test('a long text leaves room for others, and counting it can be cancelled', async () => {
  const run = new AbortController();
  let turns = 0;
  const others = setInterval(() => {
    turns += 1;
    if (turns === 3) run.abort(new Error('cancelled'));
  });

  const counting = trySkill(wordCount, { text: 'word '.repeat(200_000) }, { signal: run.signal });

  await expect(counting).rejects.toThrow('cancelled');
  clearInterval(others);
});

test('a language tag that is well-formed but unknown is no error', async () => {
  expect((await trySkill(wordCount, { text: 'one two', locale: 'xx-YY' })).words).toBe(2);
});
