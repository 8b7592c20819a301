/**
 * Splits a text into words for indexing and search. The databases store these words and split nothing themselves, so
 * both find the same memories, regardless of their parsers and locales. Pure; independent of the machine.
 */
import { normalized } from '../../kernel/text.ts';

/** Indexed words of one text; later words are not found. */
export const wordsMax = 10_000;
/** Code points of one word; longer words are cut. */
const wordCharsMax = 64;
/** Letters and digits with the marks that belong to them. */
const run = /[\p{L}\p{N}\p{M}]+/gu;
/** Scripts without spaces between words. */
const unspaced =
  /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]/u;
const unspacedOrNot = new RegExp(`${unspaced.source}+|(?:(?!${unspaced.source}).)+`, 'gu');
/**
 * Marks to remove: accents, and the points of Hebrew and Arabic. Not the vowel signs of Indic scripts and the voicing
 * marks of kana, which distinguish words.
 */
const diacritics =
  /(?![\u3099\u309a])[\p{Script=Inherited}\u0591-\u05c7\u0610-\u061a\u06d6-\u06ed]/gu;
const letterOrDigit = /[\p{L}\p{N}]/u;
// biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII begins with them
const ascii = /^[\x00-\x7f]*$/;

/** Created at the first use, because its data takes 2 MiB. */
let segmenter: Intl.Segmenter | undefined;

/** A word as indexed, and in lower case with its accents, for stemmers. */
export interface Word {
  readonly folded: string;
  readonly raw: string;
}

/** The words of a text in their order, at most `wordsMax`; in lower case, with their accents and without. */
export function readWords(text: string): Word[] {
  if (ascii.test(text)) {
    const words = (text.toLowerCase().match(/[a-z0-9]+/g) ?? []).slice(0, wordsMax).map(cut);
    return words.map((word) => ({ folded: word, raw: word }));
  }
  const words: Word[] = [];
  for (const [found] of normalized(text, 'NFC').matchAll(run)) {
    for (const piece of pieces(found)) {
      const whole = piece.toLowerCase();
      // Decomposing a character can produce characters that are neither letters nor digits.
      for (const [word] of fold(piece).matchAll(run)) {
        if (!letterOrDigit.test(word)) continue;
        const isWhole = word.length >= whole.length - 1;
        words.push({ folded: cut(word), raw: isWhole ? cut(whole) : cut(word) });
        if (words.length === wordsMax) return words;
      }
    }
  }
  return words;
}

/** Whether a word is in a script without spaces between words. */
export function isUnspaced(word: string): boolean {
  return unspaced.test(word);
}

function* pieces(found: string): Generator<string> {
  if (!unspaced.test(found)) {
    yield found;
    return;
  }
  for (const [part] of found.matchAll(unspacedOrNot)) {
    if (!unspaced.test(part)) yield part;
    else for (const { segment } of segmentsOf(part)) yield segment;
  }
}

function segmentsOf(text: string): Intl.Segments {
  // A fixed locale, so that the words do not depend on the machine's.
  segmenter ??= new Intl.Segmenter('en', { granularity: 'word' });
  return segmenter.segment(text);
}

/** Lower case, without accents. */
export function fold(text: string): string {
  return (
    normalized(text, 'NFKD')
      .toLowerCase()
      .replace(diacritics, '')
      // Lower case of Σ depends on the following letter; use one form.
      .replaceAll('ς', 'σ')
      .normalize('NFC')
  );
}

function cut(word: string): string {
  return word.length <= wordCharsMax ? word : [...word].slice(0, wordCharsMax).join('');
}
