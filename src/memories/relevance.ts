/**
 * How well a memory answers a query (BM25): the rarer the words of the query that it has, the more often it says them,
 * and the less it says beside them, the better. Reckoned here and not by the databases, whose own ranks differ from
 * each other, know neither stems nor parts, and could not rank what a run has not handed in yet.
 */
import type { Phrase, Query, Sought } from './query.ts';

/** How soon another mention of the same word adds little (BM25's k1). */
const saturation = 1.2;
/** How much length counts (BM25's b), and the length in words that neither helps nor harms. */
const lengthWeight = 0.4;
const lengthUsual = 40;
/** What a stem counts beside the word itself, and what a part does. */
const stemWeight = 0.9;
const partWeight = 0.4;
/** How much better a memory is that has all words of the query. */
const completeBonus = 0.5;
/** Memories with a term that are counted: what more of them have is common, however many they are. */
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

/** In how many memories a word of the query occurs. */
export interface Counts {
  readonly strong: number;
  readonly weak: number;
}

/** What a word of the query and its parts are worth. */
export type Weights = readonly Counts[];

/** Words in one text, each with a space on both sides, so that a search meets whole words only. */
export function joinWords(words: readonly string[]): string {
  return words.length === 0 ? '' : ` ${words.join(' ')} `;
}

/** The words that were joined. */
export function splitWords(words: string): string[] {
  return words === '' ? [] : words.slice(1, -1).split(' ');
}

/** The rarer among `all` memories, the more a word is worth. */
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

/** Among memories that are all at hand, those that a query finds, best first. */
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

/** Whether a query finds a memory: it has all phrases, or where there is none, one of the words. */
export function matches(memory: Pick<Ranked, 'words' | 'terms'>, query: Query): boolean {
  if (query.phrases.length > 0) return query.phrases.every((phrase) => says(memory, phrase));
  const terms = ` ${memory.terms} `;
  return query.sought.some(({ strong, weak }) => hasOne(terms, strong) || hasOne(terms, weak));
}

function says({ words }: Pick<Ranked, 'words'>, { text, isUnspaced }: Phrase): boolean {
  return (isUnspaced ? words.replaceAll(' ', '') : words).includes(text);
}

/** Greater than 0 when a word of `query` occurs that not every memory has. */
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

/** How often the word itself is said; less than once where only its stem is. */
function mentions(words: string, { word }: Sought): number {
  if (word === null) return 1;
  const wanted = ` ${word} `;
  let times = 0;
  // Neighbours share the space between them.
  for (let at = words.indexOf(wanted); at !== -1; at = words.indexOf(wanted, at + 1)) times += 1;
  return times === 0 ? stemWeight : times;
}
