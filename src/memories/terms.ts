/**
 * What the index knows a memory by: its words and its tag, each under the number of its owner. One
 * index serves all agents, and a search reads no entry of another's. A term is made of characters
 * that neither database takes for syntax or for the end of a word.
 */
import { createHash } from 'node:crypto';

// Neither a letter nor a digit nor ASCII: no word has them, and SQLite does not split there.
const beforeWord = '\u00b7';
const beforeTag = '\u00a7';

/** The terms of a memory, or those that a memory must have to be found: each once. */
export function termsOf(owner: number, words: readonly string[], tag?: string): string[] {
  const terms = words.map((word) => `${owner}${beforeWord}${word}`);
  // Hashed, since a tag may hold anything.
  if (tag !== undefined) terms.push(`${owner}${beforeTag}${digest(tag)}`);
  return [...new Set(terms)];
}

function digest(tag: string): string {
  return createHash('sha256').update(tag).digest('hex').slice(0, 32);
}
