/**
 * The relevance of a memory to a query (BM25): rare words of the query, high frequency and short text rank higher.
 * Computed here and not by the databases: their ranks differ from each other, ignore stems and parts, and could not
 * include a run's unrecorded memories.
 */
import type { Phrase, Query, QueryTerm } from './query.ts';

/** Saturation of the term frequency (BM25's k1). */
const saturation = 1.2;
/** Weight of the length (BM25's b), and the neutral length in words. */
const lengthWeight = 0.4;
const lengthUsual = 40;
/** Weights of a stem and of a part, relative to the word itself. */
const stemWeight = 0.9;
const partWeight = 0.4;
/** Bonus for a memory with all words of the query. */
const completeBonus = 0.5;
/** Counting stops here: a term in more memories is common in any case. */
export const countedMax = 5_000;

/** The fields that ranking uses. */
export interface Ranked {
  readonly id: string;
  /** As `joinWords` wrote them. */
  readonly words: string;
  readonly word_count: number;
  /** As `termsText` wrote them. */
  readonly terms: string;
}

/** In how many memories a word of the query occurs: by its strong terms and by its weak ones. */
export interface Counts {
  readonly strong: number;
  readonly weak: number;
}

/** The weight of each word of the query (inverse document frequency), by strong and weak terms. */
export type Weights = readonly Counts[];

/** Joins words with a space on both sides of each, so that a text search matches whole words only. */
export function joinWords(words: readonly string[]): string {
  return words.length === 0 ? '' : ` ${words.join(' ')} `;
}

/** The rarer a word is among `all` memories, the greater its weight. */
export function weightsOf(counts: readonly Counts[], all: number): Weights {
  const worth = (count: number) => {
    const counted = Math.min(count, countedMax);
    return Math.log(1 + (Math.max(all, counted) - counted + 0.5) / (counted + 0.5));
  };
  return counts.map(({ strong, weak }) => ({
    strong: worth(strong),
    weak: partWeight * (strong === 0 ? worth(weak) : Math.min(worth(weak), worth(strong))),
  }));
}

/** Searches a list of memories; best first. */
export function findAmong<M extends Ranked>(memories: readonly M[], query: Query): M[] {
  const weights = weightsOf(countAmong(memories, query), memories.length);
  return rank(
    memories.filter((memory) => matches(memory, query)),
    query,
    weights,
  );
}

/** In how many of these memories each word of the query occurs. */
export function countAmong(memories: readonly Ranked[], query: Query): Counts[] {
  const texts = memories.map(({ terms }) => ` ${terms} `);
  const count = (terms: readonly string[]) => texts.filter((text) => hasOne(text, terms)).length;
  return query.sought.map(({ strong, weak }) => ({ strong: count(strong), weak: count(weak) }));
}

/** Whether a memory matches: it has all phrases of the query or, without phrases, one of its words. */
export function matches(memory: Pick<Ranked, 'words' | 'terms'>, query: Query): boolean {
  if (query.phrases.length > 0) return query.phrases.every((phrase) => hasPhrase(memory, phrase));
  const terms = ` ${memory.terms} `;
  return query.sought.some(({ strong, weak }) => hasOne(terms, strong) || hasOne(terms, weak));
}

function hasPhrase({ words }: Pick<Ranked, 'words'>, { text, isUnspaced }: Phrase): boolean {
  return (isUnspaced ? words.replaceAll(' ', '') : words).includes(text);
}

/** The score of a memory; 0 if it has no word of the query. */
function relevance(memory: Ranked, { sought }: Query, weights: Weights): number {
  const length = 1 - lengthWeight + (lengthWeight * memory.word_count) / lengthUsual;
  const terms = ` ${memory.terms} `;
  let sum = 0;
  let had = 0;
  for (const [i, one] of sought.entries()) {
    const weight = weights[i];
    if (weight === undefined) continue;
    if (hasOne(terms, one.strong)) {
      const times = mentions(memory.words, one);
      sum += (weight.strong * times * (saturation + 1)) / (times + saturation * length);
      had += 1;
    } else if (hasOne(terms, one.weak)) {
      sum += (weight.weak * (saturation + 1)) / (1 + saturation * length);
      had += partWeight;
    }
  }
  return sum * (1 + (completeBonus * had) / Math.max(1, sought.length));
}

/** Best first; newest first among equals. */
export function rank<M extends Ranked>(
  memories: readonly M[],
  query: Query,
  weights: Weights,
): M[] {
  return memories
    .map((memory) => ({ memory, score: relevance(memory, query, weights) }))
    .sort((a, b) => b.score - a.score || (a.memory.id < b.memory.id ? 1 : -1))
    .map(({ memory }) => memory);
}

function hasOne(terms: string, some: readonly string[]): boolean {
  for (const term of some) if (terms.includes(` ${term} `)) return true;
  return false;
}

/** How often the word occurs; less than one if only its stem does. */
function mentions(words: string, { word }: QueryTerm): number {
  if (word === null) return 1;
  const wanted = ` ${word} `;
  let times = 0;
  // Adjacent words share the space between them, so the search steps by one character.
  for (let at = words.indexOf(wanted); at !== -1; at = words.indexOf(wanted, at + 1)) times += 1;
  return times === 0 ? stemWeight : times;
}
