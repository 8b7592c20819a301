/**
 * Search: the memories of one owner that have all words of a query, best first. The newest 500
 * matches are ranked, fewer when they are long; the others follow, newest first. So a search costs
 * little however many match, and every match is on some page.
 */
import type { Handle } from '../database/database.ts';
import { cutPage, type PageAsked } from '../database/page-bytes.ts';
import { type Ranked, rank } from './relevance.ts';
import {
  bytesOfMemories,
  memoriesBySeq,
  newestMatches,
  sizesOf,
  wordsOfMemories,
} from './search.store.ts';
import { wantedTerms } from './terms.ts';

/** Matches that are ranked, and how many words they may have together. */
const rankedMax = 500;
const rankedWordsMax = 65_536;

export interface Wanted {
  readonly owner: number;
  /** As `queryWordsOf` gives them; without any, nothing is found. */
  readonly words: readonly string[];
  readonly tag?: string | undefined;
}

type Match = Ranked & { readonly seq: number };

interface Head {
  readonly matches: Match[];
  readonly others: number[];
}

const noneLeftOut: ReadonlySet<string> = new Set();

/**
 * A page of what is found, how many are found in all, and the offset at which to go on where the page
 * was cut for its bytes.
 */
export async function search(db: Handle, wanted: Wanted, { limit, offset }: PageAsked) {
  if (wanted.words.length === 0) return { rows: [], total: 0, next: null };
  const terms = wantedTerms(wanted.owner, wanted.words, wanted.tag);
  const { seqs, total } = await newestMatches(db, terms, Math.max(rankedMax, offset + limit));
  const head = await headOf(db, wanted.owner, seqs.slice(0, rankedMax), noneLeftOut);
  const ranked = rank(head.matches, wanted.words).map(({ seq }) => seq);
  const order = [...ranked, ...head.others, ...seqs.slice(rankedMax)];
  const asked = order.slice(offset, offset + limit);
  const bytes = new Map(
    (await bytesOfMemories(db, wanted.owner, asked)).map((row) => [row.seq, row.bytes]),
  );
  const { rows, next } = cutPage(
    asked.map((seq) => ({ seq, bytes: bytes.get(seq) ?? 0 })),
    { offset },
  );
  const fitting = rows.map(({ seq }) => seq);
  return { rows: await inOrder(db, wanted.owner, fitting), total, next };
}

/**
 * The matches without some ids, for a run that adds its own: those that are ranked, with their
 * words, and the numbers of those that follow, newest first. At least 500 in all, if there are.
 */
export async function matchesOf(
  db: Handle,
  wanted: Wanted,
  without: ReadonlySet<string>,
): Promise<Head> {
  if (wanted.words.length === 0) return { matches: [], others: [] };
  const terms = wantedTerms(wanted.owner, wanted.words, wanted.tag);
  const { seqs } = await newestMatches(db, terms, rankedMax + without.size);
  return headOf(db, wanted.owner, seqs, without);
}

/** The memories of these numbers, in their order. */
export async function inOrder(db: Handle, owner: number, seqs: readonly number[]) {
  if (seqs.length === 0) return [];
  const rows = new Map((await memoriesBySeq(db, owner, seqs)).map((row) => [row.seq, row]));
  return seqs.flatMap((seq) => rows.get(seq) ?? []);
}

/** Of matches, newest first and without some ids: as many as are ranked, and the others. */
async function headOf(
  db: Handle,
  owner: number,
  seqs: readonly number[],
  without: ReadonlySet<string>,
): Promise<Head> {
  const bySeq = new Map((await sizesOf(db, owner, seqs)).map((one) => [one.seq, one]));
  const wanted = seqs.flatMap((seq) => bySeq.get(seq) ?? []).filter(({ id }) => !without.has(id));
  const length = rankedLength(wanted.map(({ word_count }) => word_count));
  const numbers = wanted.map(({ seq }) => seq);
  return {
    matches: await wordsOfMemories(db, owner, numbers.slice(0, length)),
    others: numbers.slice(length),
  };
}

/** How many of the first are ranked, by their sizes. */
function rankedLength(sizes: readonly number[]): number {
  let words = 0;
  const end = sizes.findIndex((size) => {
    words += size;
    return words > rankedWordsMax;
  });
  return Math.min(end === -1 ? sizes.length : end, rankedMax);
}
