/**
 * Search: the memories of one owner that have all words of a query, best first. The newest 500
 * matches are ranked, fewer when they are long; the others follow, newest first. So a search costs
 * little however many match, and every match is on some page.
 */
import type { Handle } from '../database/database.ts';
import type { ShownRow } from './memories.store.ts';
import { type Ranked, rank } from './relevance.ts';
import { memoriesBySeq, newestMatches, sizesOf, wordsOfMemories } from './search.store.ts';
import { termsOf } from './terms.ts';

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

/** A page of what is found, and how many are found in all. */
export async function search(
  db: Handle,
  wanted: Wanted,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ rows: ShownRow[]; total: number }> {
  if (wanted.words.length === 0) return { rows: [], total: 0 };
  const terms = termsOf(wanted.owner, wanted.words, wanted.tag);
  const newest = await newestMatches(db, terms, { limit: rankedMax, offset: 0 });
  const head = await headOf(db, wanted.owner, newest.seqs);
  const ranked = rank(head.matches, wanted.words).map(({ seq }) => seq);
  const order = [...ranked, ...newest.seqs.slice(head.length)];
  let seqs = order.slice(offset, offset + limit);
  if (offset + limit > order.length && newest.total > order.length) {
    const rest = { limit: limit - seqs.length, offset: Math.max(offset, order.length) };
    seqs = [...seqs, ...(await newestMatches(db, terms, rest)).seqs];
  }
  return { rows: await inOrder(db, wanted.owner, seqs), total: newest.total };
}

/** The matches that are ranked, with their words; `without` are left out and not counted. */
export async function matchesOf(
  db: Handle,
  wanted: Wanted,
  without: ReadonlySet<string>,
): Promise<Match[]> {
  if (wanted.words.length === 0) return [];
  const terms = termsOf(wanted.owner, wanted.words, wanted.tag);
  const page = { limit: rankedMax + without.size, offset: 0 };
  const { seqs } = await newestMatches(db, terms, page);
  const { matches } = await headOf(db, wanted.owner, seqs);
  return matches.filter(({ id }) => !without.has(id));
}

/** The memories of these numbers, in their order. */
export async function inOrder(
  db: Handle,
  owner: number,
  seqs: readonly number[],
): Promise<ShownRow[]> {
  if (seqs.length === 0) return [];
  const rows = new Map((await memoriesBySeq(db, owner, seqs)).map((row) => [row.seq, row]));
  return seqs.flatMap((seq) => rows.get(seq) ?? []);
}

/** Of matches, newest first, as many as are ranked: how many that is, and what ranks them. */
async function headOf(
  db: Handle,
  owner: number,
  seqs: readonly number[],
): Promise<{ length: number; matches: Match[] }> {
  const sizes = new Map((await sizesOf(db, owner, seqs)).map((one) => [one.seq, one.word_count]));
  let length = 0;
  let words = 0;
  for (const seq of seqs) {
    words += sizes.get(seq) ?? 0;
    if (words > rankedWordsMax) break;
    length += 1;
  }
  return { length, matches: await wordsOfMemories(db, owner, seqs.slice(0, length)) };
}
