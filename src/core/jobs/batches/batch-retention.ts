/** Deletes old batches, once retention has deleted their jobs. */
import type { Database } from '../../../adapters/database/database.ts';
import { deleteAll } from '../../../adapters/database/in-batches.ts';
import { type Clock, dayMs } from '../../../kernel/clock.ts';
import { deleteBatchesBefore } from './batches.store.ts';

/** Rows deleted in one transaction: each has up to a thousand answers. */
const rowsMax = 100;

export function deleteOldBatches(database: Database, clock: Clock, days: number): Promise<number> {
  const before = clock.now() - days * dayMs;
  return deleteAll(database, rowsMax, (tx) => deleteBatchesBefore(tx, before, rowsMax));
}
