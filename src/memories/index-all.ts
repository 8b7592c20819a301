/**
 * The index of memories made anew: for a database that they came into without it, and for memories whose entry was
 * made by an earlier version.
 */
import type { Database, Transaction } from '../database/database.ts';
import { indexMemories, reindexMemory } from './index.store.ts';
import {
  findWithoutTerms,
  memoriesAfter,
  memoriesWithoutTerms,
  updateMemory,
} from './memories.store.ts';
import { indexedAs } from './record.ts';
import { termsText } from './terms.ts';
import { readWords } from './words.ts';

/** Memories at a time. One has some hundred KiB of words at most. */
const memoriesMax = 100;

/** Fills the index, which has to be empty. */
export async function indexAllMemories(tx: Transaction): Promise<void> {
  for (let after = Number.MIN_SAFE_INTEGER; ; ) {
    const rows = await memoriesAfter(tx, after, memoriesMax);
    await indexMemories(tx, rows.map(indexedAs));
    const last = rows.at(-1);
    if (last === undefined || rows.length < memoriesMax) return;
    after = last.seq;
  }
}

/** Entries made anew in one transaction, which others wait for; words of them, and transactions of one call. */
const renewedMax = 25;
const renewedBytesMax = 65_536;
const renewalsMax = 20;

/**
 * Makes up to some hundred entries anew, the newest first, and returns how many. Each has its terms in its row from then
 * on, so that what was done counts after an interruption. An entry that is not made anew yet is found by its words.
 */
export async function renewIndex(database: Database): Promise<number> {
  // Mostly there are none, and a look takes no place among the writes.
  if ((await findWithoutTerms(database.read, {})) === undefined) return 0;
  let renewed = 0;
  for (let step = 0; step < renewalsMax; step++) {
    const count = await database.write(renewSome);
    renewed += count;
    if (count === 0) break;
  }
  return renewed;
}

async function renewSome(tx: Transaction): Promise<number> {
  let bytes = 0;
  let count = 0;
  for (const row of await memoriesWithoutTerms(tx, renewedMax)) {
    const terms = termsText(readWords(row.content), row.tag);
    await updateMemory(tx, row.seq, { terms });
    await reindexMemory(tx, indexedAs(row), terms);
    count += 1;
    bytes += row.content.length;
    if (bytes > renewedBytesMax) break;
  }
  return count;
}
