/**
 * The indexed terms of a memory: its words, their stems and parts, and its tag, each prefixed with the
 * number of its owner. One index serves all agents, and a search reads no entry of another agent. The
 * platform makes the terms and the databases only look them up, so both databases find the same memories.
 * Terms contain no character that either database reads as syntax or as a word boundary.
 */
import { createHash } from 'node:crypto';
import { formsIn, pairsOf } from './forms.ts';
import { languagesOf } from './languages.ts';
import { joinWords } from './relevance.ts';
import type { Word } from './words.ts';

// Prefixes of terms: neither letters nor digits, so no word contains them; not ASCII, so SQLite does not split there.
const beforeWord = '\u00b7';
const beforePart = '\u00a6';
const beforeEnd = '\u00ac';
const beforeTag = '\u00a7';

/** Distinct words of a memory whose stems and parts are indexed. */
const formedWordsMax = 1_000;
/** Characters in scripts without spaces whose pairs are indexed. */
const pairedCharsMax = 4_000;

const ideographic = /^[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}]+$/u;
const han = /\p{Script=Han}/u;

export const wordTerm = (word: string) => `${beforeWord}${word}`;
export const partTerm = (part: string) => `${beforePart}${part}`;
export const endTerm = (end: string) => `${beforeEnd}${end}`;
export const tagTerm = (tag: string) => `${beforeTag}${digest(tag)}`;

/** Whether a word is in a Chinese or Japanese script, which puts no spaces between words. */
export const isIdeographic = (word: string) => ideographic.test(word);

/**
 * The distinct terms of a memory, separated by spaces, the tag's last. Without owners, because the owner is known only
 * inside the transaction and the terms are made before it.
 */
export function termsText(words: readonly Word[], tag: string): string {
  const terms = new Set<string>();
  const different = new Map<string, Word>();
  for (const word of words) {
    terms.add(wordTerm(word.folded));
    if (different.size < formedWordsMax) different.set(word.folded, word);
  }
  addForms(terms, [...different.values()]);
  addNeighbours(terms, words);
  return `${[...terms].join(' ')} ${tagTerm(tag)}`.trimStart();
}

/** The indexed columns of a memory's row. */
export function columnsOfWords(words: readonly Word[], tag: string) {
  return {
    words: joinWords(words.map(({ folded }) => folded)),
    word_count: words.length,
    terms: termsText(words, tag),
  };
}

/** Replaces the tag in the terms. */
export function retagged(terms: string, tag: string): string {
  return `${terms.slice(0, terms.lastIndexOf(beforeTag))}${tagTerm(tag)}`;
}

/** The terms of a memory in the index. An early version recorded none, and indexed its words alone. */
export function indexedTerms(terms: string | null, words: string, tag: string): string {
  if (terms !== null) return terms;
  const distinct = new Set(words.split(' ').filter(Boolean));
  return `${[...distinct].map(wordTerm).join(' ')} ${tagTerm(tag)}`.trimStart();
}

function addForms(terms: Set<string>, words: readonly Word[]): void {
  const formsOf = formsIn(languagesOf(words.map(({ folded }) => folded)));
  for (const word of words) {
    const { strong, parts, ends } = formsOf(word);
    for (const stem of strong) if (stem !== '') terms.add(wordTerm(stem));
    for (const part of parts) terms.add(partTerm(part));
    for (const end of ends) terms.add(endTerm(end));
  }
}

/** Adds pairs of characters: without spaces, word boundaries vary with the context, but pairs do not. */
function addNeighbours(terms: Set<string>, words: readonly Word[]): void {
  for (const text of runsOf(words.map(({ folded }) => folded))) {
    for (const char of text) if (han.test(char)) terms.add(partTerm(char));
    for (const pair of pairsOf(text)) terms.add(partTerm(pair));
  }
}

/** Consecutive words of the Chinese and Japanese scripts, as one text each. */
export function runsOf(words: readonly string[]): string[] {
  const runs: string[] = [];
  let left = pairedCharsMax;
  let isOpen = false;
  for (const word of words) {
    if (isIdeographic(word) && left > 0) {
      left -= word.length;
      if (isOpen) runs.push(`${runs.pop()}${word}`);
      else runs.push(word);
      isOpen = true;
    } else isOpen = false;
  }
  return runs;
}

/** The Chinese characters of a text. */
export const hanOf = (text: string) => [...text].filter((char) => han.test(char));

function digest(tag: string): string {
  return createHash('sha256').update(tag).digest('hex').slice(0, 32);
}
