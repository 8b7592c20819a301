/** Makes the full-text index of memories that were moved into a database. */
import type { Transaction } from '../../adapters/database/database.ts';
import { indexMemories } from './index.store.ts';
import { memoriesAfter } from './memories.store.ts';
import { indexedAs } from './record.ts';

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
