/** Retention of the ledger: old days are deleted in batches. */
import type { Database } from '../../adapters/database/database.ts';
import { deleteInBatches, foundAndDeleted } from '../../adapters/database/in-batches.ts';
import { type Clock, dayMs } from '../../kernel/clock.ts';
import { dayOf, daysMax } from './days.ts';
import { deleteUsageBefore } from './usage.store.ts';

/** Rows deleted in one transaction. */
const rowsMax = 1_000;

/** Deletes usage older than the most days of a request. Returns the number of rows. */
export function deleteOldUsage(deps: { database: Database; clock: Clock }): Promise<number> {
  const before = dayOf(deps.clock.now() - daysMax * dayMs);
  return deleteInBatches(deps.database, rowsMax, async (tx) =>
    foundAndDeleted(await deleteUsageBefore(tx, before, rowsMax)),
  );
}
