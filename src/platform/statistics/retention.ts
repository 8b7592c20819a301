/** Retention of statistics: rows outside all windows are deleted in batches. */
import type { Database } from '../../adapters/database/database.ts';
import { deleteInBatches, foundAndDeleted } from '../../adapters/database/in-batches.ts';
import type { Clock } from '../../kernel/clock.ts';
import { deleteKeyRuns, deleteRunCounts } from './statistics.store.ts';
import { firstKeyDay } from './statistics.ts';
import { windows } from './windows.ts';

/** Rows deleted in one transaction. */
const rowsMax = 1_000;
/** Kept beyond the window, so that a concurrent request misses no row. */
const spareMs = 60 * 60 * 1_000;

export async function deleteOldStatistics(parts: {
  database: Database;
  clock: Pick<Clock, 'now'>;
}): Promise<void> {
  const { database, clock } = parts;
  for (const { seconds, buckets } of Object.values(windows)) {
    const before = clock.now() - seconds * 1_000 * buckets - spareMs;
    await deleteInBatches(database, rowsMax, async (tx) =>
      foundAndDeleted(await deleteRunCounts(tx, seconds, before, rowsMax)),
    );
  }
  await deleteInBatches(database, rowsMax, async (tx) =>
    foundAndDeleted(await deleteKeyRuns(tx, firstKeyDay(clock.now()), rowsMax)),
  );
}
