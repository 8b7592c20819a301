/**
 * Cleanup: cancels the deliveries of a webhook that is switched off, and deletes those of a webhook that
 * is deleted. One transaction handles a batch, which is all of them unless the receiver has been down
 * for long. The sweep handles the rest, and no delivery of it is sent meanwhile.
 */
import type { CountChange, Writer } from '../../adapters/database/counts.ts';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import { cancelDeliveries, deleteEmptyCounts, findDeliveriesOf } from './cleanup.store.ts';
import { deliveryCounts } from './deliveries.store.ts';
import { deleteDeliveries, findInactive } from './recovery.store.ts';
import {
  deleteWebhook,
  isAnyRemoved,
  lockHealth,
  lockRemovedWebhook,
  markRemoved,
} from './webhooks.store.ts';

/** Deliveries that one transaction cancels or deletes. */
const batchMax = 5_000;
/** Transactions that one sweep spends on deleting. */
const removalsMax = 20;

type Change = CountChange<'webhook_delivery_counts'>;

/**
 * Cancels a batch of pending deliveries; the changes of their counts. An attempt under way runs to its
 * end, because the receiver may already be processing it.
 */
export async function cancelPendingBatch(
  tx: Transaction,
  webhookId: string,
  now: number,
): Promise<Change[]> {
  const cancelled = await cancelDeliveries(tx, webhookId, now, batchMax);
  const change: Change = { kind: { webhook_id: webhookId }, from: 'pending', to: 'cancelled' };
  return Array.from({ length: cancelled }, () => change);
}

/** Deletes a webhook, which the transaction has locked, and its deliveries. */
export async function removeWebhook(tx: Transaction, writer: Writer, id: string): Promise<void> {
  await markRemoved(tx, { ids: [id] });
  await deleteBatch(tx, writer, id);
}

/**
 * Deletes a batch of deliveries of a webhook, and the webhook itself once none is left. The counts are
 * decreased one by one rather than deleted, because another process may be folding them at the moment.
 */
async function deleteBatch(tx: Transaction, writer: Writer, id: string): Promise<void> {
  const ids = await findDeliveriesOf(tx, id, batchMax);
  const deleted = await deleteDeliveries(tx, ids);
  await deliveryCounts.change(
    tx,
    writer,
    deleted.map(({ status }) => ({ kind: { webhook_id: id }, from: status, to: null })),
  );
  if (ids.length === batchMax) return;
  await deleteEmptyCounts(tx, id);
  await deleteWebhook(tx, id);
}

/** Handles the deliveries that earlier transactions have left; the sweep calls it. */
export async function continueCleanup(
  database: Database,
  now: number,
  writer: Writer,
): Promise<void> {
  const inactive = await findInactive(database.read, { after: '' });
  if (inactive !== undefined) {
    const { id } = inactive;
    await database.write(async (tx) => {
      const [health] = await lockHealth(tx, { ids: [id] });
      if (health?.active !== 0) return;
      await deliveryCounts.change(tx, writer, await cancelPendingBatch(tx, id, now));
    });
  }
  for (let round = 0; round < removalsMax; round++) {
    if (!(await isAnyRemoved(database.read))) return;
    await database.write(async (tx) => {
      const removed = await lockRemovedWebhook(tx);
      if (removed !== undefined) await deleteBatch(tx, writer, removed);
    });
  }
}
