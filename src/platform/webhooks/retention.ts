/** Retention: deletes old deliveries. */
import type { Writer } from '../../adapters/database/counts.ts';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import { deleteInBatches } from '../../adapters/database/in-batches.ts';
import { type Clock, dayMs } from '../../kernel/clock.ts';
import { idFloor } from '../../kernel/ids.ts';
import { deleteEmptyCounts } from './cleanup.store.ts';
import { deliveryCounts } from './deliveries.store.ts';
import { deleteDeliveries, findEnded } from './recovery.store.ts';

/** Deliveries deleted in one transaction. */
const deletedMax = 500;

/** Deletes deliveries that were created more than `days` ago and have ended; how many. */
export async function deleteExpiredDeliveries(
  { database, clock, writer }: { database: Database; clock: Clock; writer: Writer },
  days: number,
): Promise<number> {
  const before = idFloor(clock.now() - days * dayMs);
  const total = await deleteInBatches(database, deletedMax, (tx) => deleteSome(tx, writer, before));
  await database.write((tx) => deliveryCounts.fold(tx, writer));
  await database.write((tx) => deleteEmptyCounts(tx));
  return total;
}

async function deleteSome(tx: Transaction, writer: Writer, before: string) {
  const ended = await findEnded(tx, { before, limit: deletedMax });
  const rows = await deleteDeliveries(
    tx,
    ended.map(({ id }) => id),
  );
  await deliveryCounts.change(
    tx,
    writer,
    rows.map(({ webhook_id, status }) => ({ kind: { webhook_id }, from: status, to: null })),
  );
  return { found: ended.length, deleted: rows.length };
}
