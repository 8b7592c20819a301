/**
 * What the index knows a memory by: its words and its tag, each under the number of its owner. One
 * index serves all agents, and a search reads no entry of another's. A term is made of characters
 * that neither database takes for syntax or for the end of a word.
 */
import { createHash } from 'node:crypto';

// Neither a letter nor a digit nor ASCII: no word has them, and SQLite does not split there.
const beforeWord = '\u00b7';
const beforeTag = '\u00a7';

/** The terms that a memory of `owner` must have to be found: each once. */
export function wantedTerms(owner: number, words: readonly string[], tag?: string): string[] {
  return [...unowned(words, tag)].map((term) => `${owner}${term}`);
}

/**
 * The terms of a memory, each once and with a space between two, still without their owner: so they
 * are made before the transaction in which the owner is known.
 */
export function termsText(words: readonly string[], tag: string): string {
  return [...unowned(words, tag)].join(' ');
}

function unowned(words: readonly string[], tag?: string): Set<string> {
  const terms = new Set(words.map((word) => `${beforeWord}${word}`));
  // Hashed, since a tag may hold anything.
  if (tag !== undefined) terms.add(`${beforeTag}${digest(tag)}`);
  return terms;
}

function digest(tag: string): string {
  return createHash('sha256').update(tag).digest('hex').slice(0, 32);
}
