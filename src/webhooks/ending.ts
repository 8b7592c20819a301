/**
 * How deliveries end with their webhook: cancelled when it is switched off, deleted when it is. A
 * transaction does this for so many at a time, which is all of them unless a receiver has been down
 * for long; the sweep goes on with the others, and none of them is sent meanwhile.
 */
import type { CountChange, Writer } from '../database/counts.ts';
import type { Database, Transaction } from '../database/database.ts';
import { changeDeliveryCounts } from './deliveries.store.ts';
import { cancelDeliveries, deleteEmptyCounts, findDeliveriesOf } from './ending.store.ts';
import { deleteDeliveries, findInactive } from './recovery.store.ts';
import {
  deleteWebhook,
  isAnyRemoved,
  lockRemovedWebhook,
  lockStandings,
  markRemoved,
} from './webhooks.store.ts';

/** Deliveries that one transaction ends. */
const endedMax = 5_000;
/** Transactions in which one pass deletes. */
const removalsMax = 20;

type Change = CountChange<'webhook_delivery_counts'>;

/**
 * Cancels deliveries that are pending; what that changes in the counts. An attempt under way goes on
 * to its end, because the receiver may be taking it.
 */
export async function cancelSome(
  tx: Transaction,
  webhookId: string,
  now: number,
): Promise<Change[]> {
  const cancelled = await cancelDeliveries(tx, webhookId, now, endedMax);
  const change: Change = { kind: { webhook_id: webhookId }, from: 'pending', to: 'cancelled' };
  return Array.from({ length: cancelled }, () => change);
}

/** Deletes a webhook that the transaction has locked, and what was sent to it. */
export async function removeWebhook(tx: Transaction, writer: Writer, id: string): Promise<void> {
  await markRemoved(tx, [id]);
  await deleteSome(tx, writer, id);
}

/**
 * Deletes from a webhook what one transaction may, and the webhook once nothing is left. The counts
 * are told of each delivery: another process may be moving them into its own just now.
 */
async function deleteSome(tx: Transaction, writer: Writer, id: string): Promise<void> {
  const ids = await findDeliveriesOf(tx, id, endedMax);
  const deleted = await deleteDeliveries(tx, ids);
  await changeDeliveryCounts(
    tx,
    writer,
    deleted.map(({ status }) => ({ kind: { webhook_id: id }, from: status, to: null })),
  );
  if (ids.length === endedMax) return;
  await deleteEmptyCounts(tx, id);
  await deleteWebhook(tx, id);
}

/** Goes on where transactions have left something to end. */
export async function endLeftovers(database: Database, now: number, writer: Writer): Promise<void> {
  const id = await findInactive(database.read);
  if (id !== undefined) {
    await database.write(async (tx) => {
      const [standing] = await lockStandings(tx, [id]);
      if (standing?.active !== 0) return;
      await changeDeliveryCounts(tx, writer, await cancelSome(tx, id, now));
    });
  }
  for (let round = 0; round < removalsMax; round++) {
    if (!(await isAnyRemoved(database.read))) return;
    await database.write(async (tx) => {
      const removed = await lockRemovedWebhook(tx);
      if (removed !== undefined) await deleteSome(tx, writer, removed);
    });
  }
}
