/**
 * Search: the memories of some owners that have any word of a query, or its stems or parts, best first. The 300 with
 * the rarest words are ranked exactly, fewer if they are long; the others follow, newest first. So the cost does not
 * grow with the matches, and every match is on some page. If memories have vectors, the results of semantic search are
 * merged with the first ones. It has more than 300 lines because both searches have to agree on the matches.
 */
import type { Handle } from '../../adapters/database/database.ts';
import { cutPage, type PageAsked } from '../../adapters/database/page-bytes.ts';
import { pairsOf } from './forms.ts';
import { countsOf, type FrequentTerms } from './frequent-terms.ts';
import { fused } from './fusion.ts';
import type { Near } from './meaning.ts';
import { expiredMemories } from './memories.store.ts';
import type { OwnerRow } from './owners.store.ts';
import type { Phrase, Query } from './query.ts';
import {
  type Counts,
  countedMax,
  matches,
  type Ranked,
  rank,
  type Weights,
  weightsOf,
} from './relevance.ts';
import {
  allOf,
  anyOf,
  bytesOfMemories,
  countAmong,
  countMatches,
  listsOf,
  memoriesBySeq,
  newestMatches,
  oneOf,
  phraseMatches,
  sizesOf,
  wordsOfMemories,
} from './search.store.ts';
import { indexedTerms, partTerm, runsOf, tagTerm, wordTerm } from './terms.ts';

/** Matches that are ranked, and their words together. */
const rankedMax = 300;
const rankedWordsMax = 65_536;
/** Matches read from the index to choose the ranked ones, beginning with the rarest words. */
const readMax = 8_000;

export interface SearchRequest {
  readonly owners: readonly OwnerRow[];
  readonly query: Query;
  readonly now: number;
  readonly tag?: string | undefined;
  readonly frequent: FrequentTerms;
}

type Match = Ranked & { readonly seq: number };

/** The first matches of the result. */
interface Head {
  readonly matches: Match[];
  /** The `seq` of the matches that are not ranked, because the texts are too long together. */
  readonly others: number[];
  readonly counts: readonly Counts[];
}

/** The matches of a query. Their number and the newest ones are slow to find, so only clients' searches read them. */
interface MatchSet {
  /** The best candidates: 300 or all matches. */
  readonly seqs: readonly number[];
  readonly counts: readonly Counts[];
  /** All matches, newest first, where they are known; else the expression that finds them in the index. */
  readonly all: readonly number[] | string;
  /** Expired memories that are not deleted yet. They are no matches. */
  readonly expired: ReadonlySet<number>;
}

/**
 * A page of results, their total, and the offset of the next page if this one was cut because of its size in bytes.
 */
export async function search(
  db: Handle,
  wanted: SearchRequest,
  /** Semantic search, which waits for a provider. */
  nearest: Promise<readonly Near[]> | readonly Near[],
  { limit, offset }: PageAsked,
) {
  const owners = idsOf(wanted);
  const [near, found] = await Promise.all([nearest, find(db, wanted, rankedMax)]);
  const [head, foundTotal] = await Promise.all([
    headOf(db, wanted, found, new Set()),
    totalOf(db, found),
  ]);
  const weights = weightsOf(found.counts, countOf(wanted));
  const ranked = rank(head.matches, wanted.query, weights).map(({ seq }) => seq);
  const byWords = [...ranked, ...head.others];
  const nearSeqs = near.map(({ seq }) => seq);
  const total = foundTotal + (await countOfOthers(db, wanted, byWords, nearSeqs));
  let order = fused(byWords, nearSeqs);
  if (offset + limit > order.length && total > order.length) {
    const there = new Set(order);
    const newest = await newestOf(db, owners, found, offset + limit + order.length);
    order = [...order, ...newest.filter((seq) => !there.has(seq))];
  }
  const asked = order.slice(offset, offset + limit);
  const bytes = new Map(
    (await bytesOfMemories(db, owners, asked)).map((row) => [row.seq, row.bytes]),
  );
  const { rows, next } = cutPage(
    asked.map((seq) => ({ seq, bytes: bytes.get(seq) ?? 0 })),
    { offset },
  );
  const fitting = rows.map(({ seq }) => seq);
  return { rows: await inOrder(db, owners, fitting), total, next };
}

/** How many results of semantic search are no matches by words. */
async function countOfOthers(
  db: Handle,
  wanted: SearchRequest,
  first: readonly number[],
  near: readonly number[],
): Promise<number> {
  const there = new Set(first);
  const others = near.filter((seq) => !there.has(seq));
  if (others.length === 0) return 0;
  const rows = await wordsOfMemories(db, idsOf(wanted), others);
  return rows.filter((row) => !matches(matchOf(row), wanted.query)).length;
}

/**
 * The first matches, without some ids, for a run that merges its unrecorded memories: the ranked ones, and the numbers
 * of those that follow; 300 in all, or all matches.
 */
export async function matchesOf(
  db: Handle,
  wanted: SearchRequest,
  without: ReadonlySet<string>,
): Promise<Head> {
  const found = await find(db, wanted, rankedMax + without.size);
  return headOf(db, wanted, found, without);
}

/** The memories of these numbers, in their order. */
export async function inOrder(db: Handle, owners: readonly number[], seqs: readonly number[]) {
  if (seqs.length === 0) return [];
  const rows = new Map((await memoriesBySeq(db, owners, seqs)).map((row) => [row.seq, row]));
  return seqs.flatMap((seq) => rows.get(seq) ?? []);
}

/** The number of memories of the owners. */
export const countOf = ({ owners }: Pick<SearchRequest, 'owners'>) =>
  owners.reduce((sum, { count }) => sum + count, 0);

const idsOf = ({ owners }: SearchRequest) => owners.map(({ id }) => id);

/** Whether memories of the owners may have expired and not be deleted yet. */
export const mayHaveExpired = ({ owners, now }: Pick<SearchRequest, 'owners' | 'now'>) =>
  owners.some(({ next_expiry }) => next_expiry !== null && next_expiry <= now);

/** The matches, without expired memories that are not deleted yet. */
async function find(db: Handle, wanted: SearchRequest, most: number): Promise<MatchSet> {
  const { query, tag, frequent, now } = wanted;
  const owners = idsOf(wanted);
  const expired = new Set(
    mayHaveExpired(wanted) ? await expiredMemories(db, wanted.owners, now) : [],
  );
  const tagged = tag === undefined ? [] : [anyOf(db, owners, [tagTerm(tag)])];
  const expressions = query.sought.map(({ strong, weak }) => ({
    strong: anyOf(db, owners, strong),
    weak: anyOf(db, owners, weak),
  }));
  const counts = await countsOf(db, expressions, { most: countedMax + 1, frequent });
  const isCurrent = (seq: number) => !expired.has(seq);
  if (query.phrases.length > 0) {
    const terms = query.phrases.flatMap(termsOfPhrase).map((term) => anyOf(db, owners, [term]));
    const seqs = await phraseMatches(
      db,
      { terms: allOf(db, [...terms, ...tagged]), owners },
      query.phrases,
    );
    const current = seqs.filter(isCurrent);
    return { seqs: current.slice(0, most), all: current, counts, expired };
  }
  const { seqs, all } = await findAny(
    db,
    { owners, counts, expressions, tagged, weights: weightsOf(counts, countOf(wanted)) },
    most + expired.size,
  );
  return {
    seqs: seqs.filter(isCurrent).slice(0, most),
    all: typeof all === 'string' ? all : all.filter(isCurrent),
    counts,
    expired,
  };
}

/** The number of matches. */
async function totalOf(db: Handle, { all, expired }: MatchSet): Promise<number> {
  if (typeof all !== 'string') return all.length;
  return (await countMatches(db, all)) - (await countAmong(db, all, expired));
}

/** At least the newest `limit` matches. */
async function newestOf(
  db: Handle,
  owners: readonly number[],
  { all, expired }: MatchSet,
  limit: number,
): Promise<readonly number[]> {
  if (typeof all !== 'string') return all;
  const newest = await newestMatches(db, { terms: all, owners }, limit + expired.size);
  return newest.filter((seq) => !expired.has(seq));
}

interface WordSearch {
  readonly owners: readonly number[];
  readonly counts: readonly Counts[];
  readonly expressions: readonly { readonly strong: string; readonly weak: string }[];
  readonly weights: Weights;
  /** The expressions that each match has to meet besides: that of the tag. */
  readonly tagged: readonly string[];
}

/** The matches of any word. If the lists of all words are short, it merges them here instead of in the database. */
async function findAny(
  db: Handle,
  { owners, counts, expressions, weights, tagged }: WordSearch,
  most: number,
): Promise<Pick<MatchSet, 'seqs' | 'all'>> {
  const lists = expressions
    .flatMap(({ strong, weak }, i) => [
      { expression: strong, count: counts[i]?.strong ?? 0, weight: weights[i]?.strong ?? 0 },
      { expression: weak, count: counts[i]?.weak ?? 0, weight: weights[i]?.weak ?? 0 },
    ])
    .filter(({ count }) => count > 0)
    .sort((a, b) => a.count - b.count);
  if (lists.length === 0) return { seqs: [], all: [] };
  const read = lists.slice(0, readable(lists.map(({ count }) => count)));
  const scores = await scoresOf(db, read, tagged);
  if (read.length === lists.length) {
    return { seqs: best(scores, most), all: [...scores.keys()].sort((a, b) => b - a) };
  }
  const words = lists.map(({ expression }) => expression);
  const any = allOf(db, [oneOf(db, words), ...tagged]);
  const seqs = await newestMatches(db, { terms: any, owners }, most);
  // Memories with all words of the query rank high, even if all of them are frequent and their lists were not read.
  const strong = expressions.map((one) => one.strong).filter((one) => one !== '');
  const terms = allOf(db, [...strong, ...tagged]);
  const complete = await newestMatches(db, { terms, owners }, most);
  const sum = weights.reduce((all, one) => all + one.strong, 0);
  for (const seq of complete) scores.set(seq, Math.max(sum, scores.get(seq) ?? 0));
  for (const seq of seqs) if (!scores.has(seq)) scores.set(seq, 0);
  return { seqs: best(scores, most), all: any };
}

/** How many of the lists to read: each at most `countedMax` long, together at most `readMax`. */
function readable(counts: readonly number[]): number {
  let sum = 0;
  const end = counts.findIndex((count) => {
    sum += count;
    return count > countedMax || sum > readMax;
  });
  return end === -1 ? counts.length : end;
}

/** By number: the sum of the weights of the lists that contain the memory. */
async function scoresOf(
  db: Handle,
  lists: readonly { expression: string; weight: number }[],
  tagged: readonly string[],
): Promise<Map<number, number>> {
  const scores = new Map<number, number>();
  const found = await listsOf(
    db,
    lists.map(({ expression }) => allOf(db, [expression, ...tagged])),
  );
  for (const [i, seqs] of found.entries()) {
    const weight = lists[i]?.weight ?? 0;
    for (const seq of seqs) scores.set(seq, (scores.get(seq) ?? 0) + weight);
  }
  return scores;
}

/** The best; the newest among equals. */
function best(scores: ReadonlyMap<number, number>, most: number): number[] {
  return [...scores]
    .sort(([a, ofA], [b, ofB]) => ofB - ofA || b - a)
    .slice(0, most)
    .map(([seq]) => seq);
}

/** The terms that every memory with the phrase has, however its text was split into words. */
function termsOfPhrase({ words }: Phrase): string[] {
  const runs = runsOf(words);
  const inRuns = new Set(runs.join(''));
  const spaced = words.filter((word) => ![...word].every((char) => inRuns.has(char)));
  const pairs = runs.flatMap((run) => pairsOf(run).map(partTerm));
  const terms = [...spaced.map(wordTerm), ...pairs];
  return terms.length === 0 ? words.map(wordTerm) : terms;
}

/** Splits the matches, without some ids, into those to rank and the others. */
async function headOf(
  db: Handle,
  wanted: SearchRequest,
  { seqs, counts }: MatchSet,
  without: ReadonlySet<string>,
): Promise<Head> {
  const asked = seqs.slice(0, rankedMax + without.size);
  const owners = idsOf(wanted);
  const bySeq = new Map((await sizesOf(db, owners, asked)).map((one) => [one.seq, one]));
  const there = asked.flatMap((seq) => bySeq.get(seq) ?? []).filter(({ id }) => !without.has(id));
  const length = rankedLength(there.map(({ word_count }) => word_count));
  const numbers = there.map(({ seq }) => seq);
  const rows = await wordsOfMemories(db, owners, numbers.slice(0, length));
  return { matches: rows.map(matchOf), others: numbers.slice(length), counts };
}

/** How many of the first matches are ranked, by their sizes in words. */
function rankedLength(sizes: readonly number[]): number {
  let words = 0;
  const end = sizes.findIndex((size) => {
    words += size;
    return words > rankedWordsMax;
  });
  return Math.min(end === -1 ? sizes.length : end, rankedMax);
}

/** A memory as it is ranked: a match by words needs no tag among its terms. */
function matchOf(row: Awaited<ReturnType<typeof wordsOfMemories>>[number]): Match {
  return { ...row, terms: indexedTerms(row.terms, row.words, '') };
}
