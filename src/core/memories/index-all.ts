/**
 * Rebuilds the full-text index of memories: after memories were moved into a database, and for entries that an earlier
 * version made.
 */
import type { Database, Transaction } from '../../adapters/database/database.ts';
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

/** Memories indexed at once; each has some hundred KiB of words at most. */
const memoriesMax = 100;

/** Fills the index, which must be empty. */
export async function indexAllMemories(tx: Transaction): Promise<void> {
  for (let after = Number.MIN_SAFE_INTEGER; ; ) {
    const rows = await memoriesAfter(tx, after, memoriesMax);
    await indexMemories(tx, rows.map(indexedAs));
    const last = rows.at(-1);
    if (last === undefined || rows.length < memoriesMax) return;
    after = last.seq;
  }
}

/** Entries rebuilt in one transaction, which blocks other writers; their words; and transactions of one call. */
const renewedMax = 25;
const renewedBytesMax = 65_536;
const renewalsMax = 20;

/**
 * Rebuilds up to some hundred entries, the newest first, and returns how many. A rebuilt entry has its terms in its row,
 * so an interruption loses nothing. Entries of an earlier version are found by whole words until then.
 */
export async function renewIndex(database: Database): Promise<number> {
  // Usually there are none; this read avoids a write transaction.
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
