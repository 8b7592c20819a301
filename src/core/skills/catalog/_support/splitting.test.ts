import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { growthOf, linearGrowthMax } from '../../../../../test/support/growth.ts';
import { pieceLengthMax, splitText } from './splitting.ts';

/** Texts of all that borders are made of, and of characters that consist of several code points. */
const texts = fc
  .array(
    fc.constantFrom(
      ...['word', 'a', '. ', '.\n', '\n', '\r\n', '\n\n', ' ', '   ', '```\n', '~~~~\n', '```js\n'],
      ...['é', 'e\u0301', '👩‍👩‍👧', '🇨🇭', '𝄞', '日本語。', 'ไทย', '🙂', '\u200cำ', '\u06dd!'],
    ),
    { maxLength: 120 },
  )
  .map((parts) => parts.join(''));
const lengths = fc.integer({ min: 2, max: 60 });

const characters = new Intl.Segmenter('en', { granularity: 'grapheme' });

/** Places of the cuts in the text. */
function cutsOf(pieces: readonly string[]): number[] {
  let at = 0;
  return pieces.slice(0, -1).map((piece) => {
    at += piece.length;
    return at;
  });
}

describe('the pieces of any text', () => {
  test('are the text again when they are joined', () => {
    fc.assert(
      fc.property(texts, lengths, (text, lengthMax) => {
        expect(splitText(text, lengthMax).join('')).toBe(text);
      }),
    );
  });

  test('are never empty, never too long and never many', () => {
    fc.assert(
      fc.property(texts, lengths, (text, lengthMax) => {
        const pieces = splitText(text, lengthMax);

        expect(pieces.every(({ length }) => length > 0 && length <= lengthMax)).toBe(true);
        // Half a surrogate pair may be missing from a piece.
        expect(pieces.length).toBeLessThanOrEqual(1 + (2 * text.length) / (lengthMax - 1));
      }),
      { numRuns: 1_000 },
    );
  });

  test('cut no character as readers see it, unless it is longer than a piece', () => {
    fc.assert(
      fc.property(texts, lengths, (text, lengthMax) => {
        const segments = characters.segment(text);
        for (const cut of cutsOf(splitText(text, lengthMax))) {
          const character = segments.containing(cut);
          if (character === undefined || character.segment.length > lengthMax) continue;
          expect(character.index).toBe(cut);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test('are well-formed where the text is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), lengths, (text, lengthMax) => {
        fc.pre(text.isWellFormed());
        expect(splitText(text, lengthMax).every((piece) => piece.isWellFormed())).toBe(true);
      }),
    );
  });

  test('are the same every time', () => {
    fc.assert(
      fc.property(texts, lengths, (text, lengthMax) => {
        expect(splitText(text, lengthMax)).toEqual(splitText(text, lengthMax));
      }),
    );
  });
});

describe('a text is cut', () => {
  test.each<[string, string, number, string[]]>([
    ['not at all when it fits', 'one two', 7, ['one two']],
    ['not at all when it is empty', '', 7, []],
    ['after a paragraph', 'One. Two.\n\nThree. Four.', 15, ['One. Two.\n\n', 'Three. Four.']],
    [
      'after all the blank lines',
      'One two.\n \n\r\n\nThree.',
      14,
      ['One two.\n \n\r\n\n', 'Three.'],
    ],
    [
      'after a sentence where no paragraph ends',
      'One is. Two is so.',
      12,
      ['One is. ', 'Two is so.'],
    ],
    [
      'inside no hard-wrapped sentence',
      'It is. It\nwas not so.',
      14,
      ['It is. ', 'It\nwas not so.'],
    ],
    ['after a line where no sentence ends', 'a,b,c,d\ne,f,g,h', 12, ['a,b,c,d\n', 'e,f,g,h']],
    ['after a word where no line ends', 'one two three', 9, ['one two ', 'three']],
    ['after a word of a script without spaces', '日本語文章', 4, ['日本語', '文章']],
    ['between characters where there is no word', '👩‍👩‍👧👩‍👩‍👧', 10, ['👩‍👩‍👧', '👩‍👩‍👧']],
    [
      'between code points of a character that is too long',
      'e\u0301\u0302\u0303',
      3,
      ['e\u0301\u0302', '\u0303'],
    ],
    ['beside a surrogate pair of a character that is too long', '👩‍👩‍👧', 4, ['👩‍', '👩‍', '👧']],
    ['before a character that is a word and more', 'aaa\u06dd!bb', 4, ['aaa', '\u06dd!bb']],
    ['not in the first half of a piece', 'A.\n\nBbbb bbbb bbbb', 12, ['A.\n\nBbbb ', 'bbbb bbbb']],
  ])('%s', (_where, text, lengthMax, pieces) => {
    expect(splitText(text, lengthMax)).toEqual(pieces);
  });
});

describe('a fenced code block', () => {
  const code = '```js\nfirst();\n\nsecond();\n```\n';

  test('stays whole when it fits, after what comes before it', () => {
    const before = 'Some words that go before.\n';

    expect(splitText(`${before}${code}`, 40)).toEqual([before, code]);
  });

  test('stays whole when what follows it has no end of a paragraph', () => {
    const after = 'Words without an end '.repeat(3);

    expect(splitText(`${code}${after}`, code.length + 1)[0]).toBe(code);
  });

  test('is cut between lines when it does not fit', () => {
    const long = `\`\`\`\n${'call(1. Here);\n'.repeat(20)}\`\`\`\n`;

    const pieces = splitText(long, 64);

    expect(pieces.length).toBeGreaterThan(3);
    expect(pieces.every((piece) => piece.endsWith('\n'))).toBe(true);
  });

  test.each([
    ['is not closed', 'One two.\n\n```\nThree four.\n\nFive six.'],
    [
      'has its fence inside a line',
      'One two.\n\n```three``` four.\n\nFive.\n```\nsix\n```\nSeven eight nine ten.',
    ],
  ])('is none when it %s', (_why, text) => {
    expect(splitText(text, 35)[0]).toBe(text.slice(0, text.indexOf('Five')));
  });

  test.each([
    ['of its own length', '````md\n```\n\ninner\n```\n\n~~~\n````\n'],
    ['with nothing after it', '```\none();\n```js\n\ntwo();\n```\n'],
  ])('ends with a fence of its own kind, %s', (_which, block) => {
    expect(splitText(`Words before.\n${block}`, 36)).toEqual(['Words before.\n', block]);
  });
});

describe.each([
  ['prose', 'The quick fox jumps over the lazy dog. Then it rests.\n\n'],
  ['no spaces', 'abcdefghij'],
  ['fences', '```\n'],
  ['blank lines', ' \n'],
  ['white space', ' '],
  ['combining marks', '\u0301'],
  ['flags', '🇨🇭'],
])('a text of %s', (_what, unit) => {
  const textOf = (length: number) => unit.repeat(Math.ceil(length / unit.length));

  test('has as few pieces as their length allows', () => {
    expect(splitText(textOf(1_000_000), pieceLengthMax).length).toBeLessThanOrEqual(85);
  });

  test('takes time in proportion to its length and to that of its pieces', async () => {
    const split = (text: string) => splitText(text, Math.ceil(text.length / 20));
    expect(await growthOf(textOf, split)).toBeLessThan(linearGrowthMax);
  });
});
