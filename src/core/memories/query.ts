/** Parses a search query into the terms of each word and the phrases in quotes. */
import { formsIn, pairsOf } from './forms.ts';
import { allLanguages, withoutStopWords } from './languages.ts';
import { endTerm, hanOf, isIdeographic, partTerm, runsOf, wordTerm } from './terms.ts';
import { isUnspaced, readWords, type Word } from './words.ts';

/** Words and pairs of characters of a query that are searched, without stop words. */
const wordsMax = 16;
const soughtMax = 40;
const phrasesMax = 4;
/** Letters of a part of a compound in the query. */
const partCharsMin = 5;

/** A word of the query, or a pair of characters in a script without spaces. */
export interface QueryTerm {
  /** The word in the query; null for a pair of characters. */
  readonly word: string | null;
  /** The word and its stems: a memory with one of these terms has the word. */
  readonly strong: readonly string[];
  /** A memory with one of these terms has a related word or a part of the word. */
  readonly weak: readonly string[];
}

/** Words that must be adjacent. */
export interface Phrase {
  readonly words: readonly string[];
  /** The text that has to occur in the memory's words, joined without spaces if `isUnspaced`. */
  readonly text: string;
  readonly isUnspaced: boolean;
}

export interface Query {
  readonly sought: readonly QueryTerm[];
  readonly phrases: readonly Phrase[];
}

const formsOfAny = formsIn(allLanguages);
const quoted = /["\u201c\u201d\u201e]([^"\u201c\u201d\u201e]*)["\u201c\u201d]/gu;

export function queryOf(text: string): Query {
  return { sought: soughtIn(readWords(text)), phrases: phrasesIn(text) };
}

function phrasesIn(text: string): Phrase[] {
  const phrases: Phrase[] = [];
  for (const [, inside = ''] of text.matchAll(quoted)) {
    const words = inside === '' ? [] : readWords(inside);
    if (words.length > 0) phrases.push(phraseOf(words));
    if (phrases.length === phrasesMax) break;
  }
  return phrases;
}

function phraseOf(read: readonly Word[]): Phrase {
  const words = read.map(({ folded }) => folded);
  if (words.some(isUnspaced)) return { words, text: words.join(''), isUnspaced: true };
  return { words, text: ` ${words.join(' ')} `, isUnspaced: false };
}

function soughtIn(words: readonly Word[]): QueryTerm[] {
  const spaced = new Map(
    words.filter(({ folded }) => !isIdeographic(folded)).map((word) => [word.folded, word]),
  );
  const telling = withoutStopWords([...spaced.keys()]).slice(0, wordsMax);
  const ofWords = telling.flatMap((folded) => {
    const word = spaced.get(folded);
    return word === undefined ? [] : [soughtBy(word)];
  });
  const runs = new Set(runsOf(words.map(({ folded }) => folded)));
  return [...ofWords, ...[...runs].flatMap(neighbours)].slice(0, soughtMax);
}

/** Uses the stemmers of all languages: a query is too short to guess its language, and unmatched stems cost little. */
function soughtBy(word: Word): QueryTerm {
  const { strong, parts, ends } = formsOfAny(word);
  const stems = [...new Set([word.folded, ...strong])].filter((stem) => stem !== '');
  const isKorean = /\p{Script=Hangul}/u.test(word.folded);
  const shortest = stems.reduce((a, b) => (b.length < a.length ? b : a));
  const weak = isKorean
    ? pairsOf(shortest).map(partTerm)
    : [
        ...parts.map(partTerm),
        ...stems.filter((stem) => stem.length >= partCharsMin - 1).map(endTerm),
        ...ends.filter((end) => end.length >= partCharsMin).map(wordTerm),
      ];
  return { word: word.folded, strong: stems.map(wordTerm), weak: [...new Set(weak)] };
}

function neighbours(run: string): QueryTerm[] {
  if ([...run].length === 1) {
    return [{ word: run, strong: [wordTerm(run), partTerm(run)], weak: [] }];
  }
  const pairs = [...new Set(pairsOf(run))].map(partTerm);
  const single = [...new Set(hanOf(run))].map(partTerm);
  return [
    ...pairs.map((pair) => ({ word: null, strong: [pair], weak: [] })),
    ...single.map((char) => ({ word: null, strong: [], weak: [char] })),
  ];
}
