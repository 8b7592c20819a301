/** The index of memories made anew, for a database that they came into without it. */
import type { Transaction } from '../database/database.ts';
import { indexMemories, memoriesAfter } from './memories.store.ts';
import { indexedAs } from './record.ts';

/** Memories at a time. One has some hundred KiB of words at most. */
const memoriesMax = 100;

/** Fills the index, which has to be empty. */
export async function indexAllMemories(tx: Transaction): Promise<void> {
  for (let after = Number.MIN_SAFE_INTEGER; ; ) {
    const rows = await memoriesAfter(tx, after, memoriesMax);
    await indexMemories(
      tx,
      rows.map((row) => ({ ...indexedAs(row), owner: row.owner })),
    );
    const last = rows.at(-1);
    if (last === undefined || rows.length < memoriesMax) return;
    after = last.seq;
  }
}
