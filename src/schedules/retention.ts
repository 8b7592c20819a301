/** Retention of due slots: the old ones whose job has ended are deleted in batches. */
import type { Database, Transaction } from '../database/database.ts';
import { deleteInBatches, foundAndDeleted } from '../database/in-batches.ts';
import { type Clock, dayMs } from '../kernel/clock.ts';
import { idFloor } from '../kernel/ids.ts';
import { deleteRuns } from './runs.store.ts';

/** Rows deleted in one transaction. */
const rowsMax = 1_000;

/**
 * Deletes at most `limit` runs that were recorded before `before` (milliseconds) and whose job, if
 * they made one, has ended or is gone; how many.
 */
export function deleteOldRuns(tx: Transaction, before: number, limit: number): Promise<number> {
  return deleteRuns(tx, idFloor(before), limit);
}

/** Deletes all runs that are more than `days` old; how many. */
export function deleteExpiredRuns(
  { database, clock }: { database: Database; clock: Clock },
  days: number,
): Promise<number> {
  const before = clock.now() - days * dayMs;
  return deleteInBatches(database, rowsMax, async (tx) =>
    foundAndDeleted(await deleteOldRuns(tx, before, rowsMax)),
  );
}
