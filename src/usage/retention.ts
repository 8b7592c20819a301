/** Retention of the ledger: days are deleted with age, a batch at a time. */
import type { Database } from '../database/database.ts';
import { deleteInBatches, foundAndDeleted } from '../database/in-batches.ts';
import { type Clock, dayMs } from '../kernel/clock.ts';
import { dayOf, daysMax } from './days.ts';
import { deleteUsageBefore } from './usage.store.ts';

/** Rows deleted in one transaction. */
const rowsMax = 1_000;

/** Deletes what was used more than `days` ago, by default all that nobody can ask for; how many rows. */
export function deleteOldUsage(
  { database, clock }: { database: Database; clock: Clock },
  days = daysMax,
): Promise<number> {
  const before = dayOf(clock.now() - days * dayMs);
  return deleteInBatches(database, rowsMax, async (tx) =>
    foundAndDeleted(await deleteUsageBefore(tx, before, rowsMax)),
  );
}
