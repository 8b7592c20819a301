import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { growthOf, linearGrowthMax } from '../../../test/support/growth.ts';
import { readWords, wordsMax } from './words.ts';

const wordsOf = (text: string) => readWords(text).map(({ folded }) => folded);

describe('the words of a text', () => {
  test.each([
    ['', []],
    ['  \n\t ', []],
    ['?!… -- ### 👍 ❤️', []],
    ['Hello, World!', ['hello', 'world']],
    ['a-b_c.d/e@f', ['a', 'b', 'c', 'd', 'e', 'f']],
    ["don't", ['don', 't']],
    ['v2 of 2026', ['v2', 'of', '2026']],
    ['the the', ['the', 'the']],
    ['Crème Brûlée', ['creme', 'brulee']],
    ['Cre\u0300me', ['creme']],
    ['İstanbul IĞDIR', ['istanbul', 'igdir']],
    ['Ελλάδα ΟΔΟΣ οδος ΟΔΟΣ’Α', ['ελλαδα', 'οδοσ', 'οδοσ', 'οδοσ', 'α']],
    ['Ёлка ЙОД', ['елка', 'иод']],
    ['ﬁne ２０２６ Ⅷ x²', ['fine', '2026', 'viii', 'x2']],
    ['½ cup', ['1', '2', 'cup']],
    ['שָׁלוֹם مُحَمَّد', ['שלום', 'محمد']],
    ['हिन्दी की किताब', ['हिन्दी', 'की', 'किताब']],
    ['한국어 검색', ['한국어', '검색']],
    ['東京都庁へ', ['東京', '都庁', 'へ']],
    ['ガス カス', ['ガス', 'カス']],
    ['カ\u3099ス ｶﾞｽ', ['ガス', 'ガス']],
    ['ภาษาไทยง่ายมาก', ['ภาษา', 'ไทย', 'ง่าย', 'มาก']],
    ['iPhone東京2026', ['iphone', '東京', '2026']],
    ['𝕳𝖊𝖑𝖑𝖔 𐐀', ['hello', '𐐨']],
    ['ﷺ', ['صلى', 'الله', 'عليه', 'وسلم']],
    ['\u0301\u0302', []],
    ['a\u200bb \u202eabc', ['a', 'b', 'abc']],
  ])('%j are %j', (text, words) => {
    expect(wordsOf(text)).toEqual(words);
  });

  test.each([
    ['NFC and NFD', 'Ångström nắng', 'A\u030angstro\u0308m na\u0306\u0301ng'],
    ['upper and lower case', 'STRASSE ÀÉÎ ΣΊΣΥΦΟΣ ЩУКА', 'strasse àéî σίσυφος щука'],
    ['wide and narrow', 'ＡＢＣ１２３', 'abc123'],
  ])('are the same in %s', (_, one, other) => {
    expect(wordsOf(one)).toEqual(wordsOf(other));
  });

  test('longer than 64 characters are cut, never inside a character', () => {
    expect(wordsOf('x'.repeat(70_000))).toEqual(['x'.repeat(64)]);
    expect(wordsOf('𐐨'.repeat(65))).toEqual(['𐐨'.repeat(64)]);
    expect(wordsOf('ກ'.repeat(20_000))).toEqual(['ກ'.repeat(64)]);
  });

  test('are at most 10,000', () => {
    expect(wordsOf('a '.repeat(32_768))).toHaveLength(wordsMax);
    expect(wordsOf('ä '.repeat(21_845))).toHaveLength(wordsMax);
    expect(wordsOf('一丁'.repeat(10_900))).toHaveLength(wordsMax);
  });

  test('hold nothing but letters, digits and their marks, and are well-formed', () => {
    const texts = fc.string({ unit: 'binary', maxLength: 50 });
    fc.assert(
      fc.property(texts, (text) => {
        for (const word of wordsOf(text)) {
          expect(word).toMatch(/^[\p{L}\p{N}\p{M}]+$/u);
          expect(word.isWellFormed()).toBe(true);
          expect([...word].length).toBeLessThanOrEqual(64);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('are found again when they are asked for by themselves', () => {
    const unspaced =
      /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]/u;
    const texts = fc.string({ unit: 'grapheme', maxLength: 50 });
    fc.assert(
      fc.property(texts, (text) => {
        // Where nothing separates words, what a word is depends on its neighbours.
        const words = wordsOf(text).filter((word) => !unspaced.test(word));
        for (const word of words) expect(wordsOf(word)).toEqual([word]);
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    ['letters', 'a'],
    ['Han', '漢'],
    ['kana', 'カ'],
    ['Thai', 'ก'],
    ['Burmese', 'မ'],
    ['marks', 'a\u0301\u0302'],
    ['what unfolds to four words', 'ﷺ'],
    ['emoji', '🏔️'],
  ])('of more and more %s take time in proportion', async (_, unit) => {
    const textOf = (length: number) => unit.repeat(Math.ceil(length / unit.length));

    expect(await growthOf(textOf, wordsOf)).toBeLessThan(linearGrowthMax);
  });
});
