/**
 * How well a memory answers a query: the more often it says the words, and the less it says beside
 * them, the better. Reckoned here and not by the databases, whose own ranks differ from each other,
 * cost a look at every match, and could not rank what a run has not handed in yet.
 */

/** How soon another mention of the same word adds little (BM25's k1). */
const saturation = 1.2;
/** How much length counts (BM25's b), and the length in words that neither helps nor harms. */
const lengthWeight = 0.75;
const lengthUsual = 40;

/** The fields that ranking uses. */
export interface Ranked {
  readonly id: string;
  /** As `joinWords` wrote them. */
  readonly words: string;
  readonly word_count: number;
}

/** Words in one text, each with a space on both sides, so that a search meets whole words only. */
export function joinWords(words: readonly string[]): string {
  return words.length === 0 ? '' : ` ${words.join(' ')} `;
}

/** The words that were joined. */
export function splitWords(words: string): string[] {
  return words === '' ? [] : words.slice(1, -1).split(' ');
}

/** Whether all of `query` occur. */
export function hasWords(memory: Pick<Ranked, 'words'>, query: readonly string[]): boolean {
  return query.length > 0 && query.every((word) => memory.words.includes(` ${word} `));
}

/** Greater than 0 when a word of `query` occurs, and below the number of words. */
export function relevance(memory: Omit<Ranked, 'id'>, query: readonly string[]): number {
  const length = 1 - lengthWeight + (lengthWeight * memory.word_count) / lengthUsual;
  let sum = 0;
  for (const word of query) {
    const times = mentions(memory.words, ` ${word} `);
    sum += times / (times + saturation * length);
  }
  return sum;
}

/** Best first; newest first among equals. */
export function rank<M extends Ranked>(memories: readonly M[], query: readonly string[]): M[] {
  return memories
    .map((memory) => ({ memory, score: relevance(memory, query) }))
    .sort((a, b) => b.score - a.score || (a.memory.id < b.memory.id ? 1 : -1))
    .map(({ memory }) => memory);
}

function mentions(words: string, wanted: string): number {
  let times = 0;
  // Two mentions in a row share the space between them.
  const step = wanted.length - 1;
  for (let at = words.indexOf(wanted); at !== -1; at = words.indexOf(wanted, at + step)) times += 1;
  return times;
}
