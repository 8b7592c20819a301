/**
 * Decides whether a new memory repeats an earlier one and replaces it. Compares words like the search: lower case, no
 * accents, and stems if the language is clear. In doubt it keeps both: a duplicate harms less than a lost fact. Pure.
 */
import { normalized } from '../../kernel/text.ts';
import { formsIn } from './forms.ts';
import { type Language, likelyLanguages } from './languages.ts';
import type { Word } from './words.ts';
import { readWords } from './words.ts';

/** Longer texts replace only identical ones; reading the words of a text in a rare script takes a millisecond a KB. */
const comparedWordsMax = 200;
const comparedCharsMax = 4_000;
/** How many times longer than the earlier text a text that contains it may be. */
const growthMax = 3;
/** Letters of the prefix that inflections of a word share. */
const keptMin = 3;
/** Endings of inflections; other endings make another word (`universe`, `university`). */
const endings = new Set(['', ...'s es e en n er em es ed d ing t te ten st'.split(' ')]);
/** Words after a number that belong to it, such as a unit: `5,000 euros a month`. */
const unitWordsMax = 4;

/** Ignored words: articles, and words that emphasize a statement or say that it holds now. */
const passedOver = new Set(
  `a an the very really quite now currently still also just
  der die das den dem des ein eine einen einem einer eines sehr wirklich jetzt derzeit noch auch
  le la les l un une tres vraiment maintenant encore aussi el los las una unos unas muy realmente ahora todavia tambien
  il lo i gli uno molto davvero adesso ancora anche o os as um uma uns umas muito realmente agora ainda tambem
  de het een heel zeer echt nu nog ook en ett mycket verkligen nu fortfarande ocksa`.split(/\s+/),
);
/** Words between a subject and its number. */
const copulas = new Set(
  `is are was were be equals ist sind war betragt est sont etait es son era sera e sono era sao eram foi is zijn was ar var
  blir`.split(/\s+/),
);

/** `same`: the new text repeats the earlier one. `changed`: it gives another number for the same subject. */
export type Likeness = 'same' | 'changed' | null;

/** How a new text relates to an earlier one; null if they are different memories. */
export function likenessOf(before: string, after: string): Likeness {
  if (before === after) return 'same';
  if (Math.max(before.length, after.length) > comparedCharsMax) {
    return plain(before) === plain(after) ? 'same' : null;
  }
  const [earlier, later] = [tokensOf(before), tokensOf(after)];
  if (earlier.length === 0 || later.length === 0) return null;
  if (isEach(earlier, later, isEqual)) return 'same';
  if (Math.max(earlier.length, later.length) > comparedWordsMax) return null;
  const equal = equalIn(before, after);
  const [short, long] = [essence(earlier), essence(later)];
  if (short.length > 0 && isEach(short, long, equal)) return 'same';
  if (isChangedNumber(earlier, later)) return 'changed';
  return continues(before, after) ? 'same' : null;
}

interface Token extends Word {
  readonly isNumber: boolean;
  readonly isCapital: boolean;
}

type Equal = (a: Token, b: Token) => boolean;

const digit = /\p{N}/u;

function tokensOf(text: string): Token[] {
  const capitals = new Set(
    readWords(text.replaceAll(/(?<![\p{L}\p{N}])[\p{Ll}][\p{L}\p{M}]*/gu, ' ')).map(
      ({ folded }) => folded,
    ),
  );
  return readWords(text).map((word) => ({
    ...word,
    isNumber: digit.test(word.folded),
    isCapital: capitals.has(word.folded),
  }));
}

const isEqual: Equal = (a, b) => a.folded === b.folded;

const essence = (tokens: readonly Token[]) =>
  tokens.filter(({ folded }) => !passedOver.has(folded));

function isEach(some: readonly Token[], others: readonly Token[], equal: Equal): boolean {
  return some.length === others.length && some.every((one, i) => equal(one, others[i] as Token));
}

/**
 * Compares words: equal, or inflections of one word in the language of both texts. Excludes names and numbers, and
 * words of the same length, which may be a man's and a woman's name.
 */
function equalIn(before: string, after: string): Equal {
  const languages = [before, after].map((text) =>
    likelyLanguages(readWords(text).map(({ folded }) => folded)),
  );
  const common = (languages[0] ?? []).filter((language) => languages[1]?.includes(language));
  if (common.length === 0) return isEqual;
  const formsOf = formsIn(common as readonly Language[]);
  return (a, b) => {
    if (isEqual(a, b)) return true;
    if (a.isNumber || b.isNumber || a.isCapital || b.isCapital) return false;
    if (!mayBeInflections(a.folded, b.folded)) return false;
    const stems = new Set(formsOf(a).strong.filter((stem) => stem !== ''));
    return formsOf(b).strong.some((stem) => stems.has(stem));
  };
}

/**
 * Whether the new text is the earlier one, a punctuation mark and more words, so that nothing is lost: `Ada prefers
 * short answers, in German.` Without the mark, the added words may change the meaning.
 */
function continues(before: string, after: string): boolean {
  const [earlier, later] = [plain(before).replace(/[.!?\u3002]+$/u, ''), plain(after)];
  if (!later.startsWith(earlier) || later.length > growthMax * earlier.length) return false;
  return /^(?:[.,;:!?](?=\s|$)| [(\u2013\u2014-] ?|[\u3002\uff0c\uff1b])/u.test(
    later.slice(earlier.length),
  );
}

const plain = (text: string) =>
  normalized(text, 'NFC').toLowerCase().replaceAll(/\s+/g, ' ').trim();

/** Whether they differ only in endings of inflections: `answer` and `answers`, `prefers` and `preferred`. */
function mayBeInflections(a: string, b: string): boolean {
  if (a.length === b.length) return false;
  let kept = 0;
  while (kept < a.length && a[kept] === b[kept]) kept += 1;
  const endingOf = (word: string) => {
    const ending = word.slice(kept);
    // English doubles a consonant before an ending.
    return ending.length > 2 && ending[0] === word[kept - 1] ? ending.slice(1) : ending;
  };
  return kept >= keptMin && endings.has(endingOf(a)) && endings.has(endingOf(b));
}

/** Whether only the number differs: `The salary of Alice is 5,000`, with the same words before and after it. */
function isChangedNumber(earlier: readonly Token[], later: readonly Token[]): boolean {
  const [a, b] = [splitAtNumber(earlier), splitAtNumber(later)];
  if (a === null || b === null) return false;
  return (
    isEach(a.subject, b.subject, isEqual) &&
    isEach(a.unit, b.unit, isEqual) &&
    copulas.has(a.subject.at(-1)?.folded ?? '')
  );
}

function splitAtNumber(tokens: readonly Token[]) {
  const from = tokens.findIndex(({ isNumber }) => isNumber);
  const to = tokens.findLastIndex(({ isNumber }) => isNumber);
  const isOne = from > 1 && tokens.slice(from, to + 1).every(({ isNumber }) => isNumber);
  const unit = tokens.slice(to + 1);
  return isOne && unit.length <= unitWordsMax ? { subject: tokens.slice(0, from), unit } : null;
}
