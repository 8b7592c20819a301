import type { Database, Transaction } from './database.ts';

/** Rows that a batch found to be deleted, and those of them that no other process deleted meanwhile. */
export interface DeletedBatch {
  readonly found: number;
  readonly deleted: number;
}

/**
 * Deletes a batch of at most `max` rows at a time, each in a transaction of its own, until one was not
 * full; how many rows that were.
 */
export async function deleteInBatches(
  database: Database,
  max: number,
  batch: (tx: Transaction) => Promise<DeletedBatch>,
): Promise<number> {
  let total = 0;
  for (;;) {
    const { found, deleted } = await database.write(batch);
    total += deleted;
    if (found < max) return total;
  }
}

/** The result of a batch that deletes every row that it finds. */
export const foundAndDeleted = (rows: number): DeletedBatch => ({ found: rows, deleted: rows });
