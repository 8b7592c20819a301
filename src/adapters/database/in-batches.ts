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

/** Deletes rows of which each batch deletes all that it finds: `deleteRows` deletes `max` at most; how many that were. */
export function deleteAll(
  database: Database,
  max: number,
  deleteRows: (tx: Transaction) => Promise<number>,
): Promise<number> {
  return deleteInBatches(database, max, async (tx) => {
    const rows = await deleteRows(tx);
    return { found: rows, deleted: rows };
  });
}
