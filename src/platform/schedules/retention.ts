/** Retention of due slots: deletes old ones whose job has ended, in batches. */
import type { Database } from '../../adapters/database/database.ts';
import { deleteInBatches, foundAndDeleted } from '../../adapters/database/in-batches.ts';
import { type Clock, dayMs } from '../../kernel/clock.ts';
import { idFloor } from '../../kernel/ids.ts';
import { deleteRuns } from './runs.store.ts';

/** Rows deleted in one transaction. */
const rowsMax = 1_000;

/** Deletes runs recorded more than `days` ago, unless their job has not ended; returns how many. */
export function deleteExpiredRuns(database: Database, clock: Clock, days: number): Promise<number> {
  const before = idFloor(clock.now() - days * dayMs);
  return deleteInBatches(database, rowsMax, async (tx) =>
    foundAndDeleted(await deleteRuns(tx, before, rowsMax)),
  );
}
