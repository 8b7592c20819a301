/**
 * How deliveries end with their webhook: cancelled when it is switched off, deleted when it is. A
 * transaction does this for so many at a time, which is all of them unless a receiver has been down
 * for long; the sweep goes on with the others, and none of them is sent meanwhile.
 */
import type { CountChange, Writer } from '../database/counts.ts';
import type { Database, Transaction } from '../database/database.ts';
import { changeDeliveryCounts } from './deliveries.store.ts';
import { cancelDeliveries, deleteDeliveriesOf } from './ending.store.ts';
import { findInactive } from './recovery.store.ts';
import {
  deleteWebhook,
  isAnyRemoved,
  lockRemovedWebhook,
  lockStandings,
  updateWebhook,
} from './webhooks.store.ts';

/** Deliveries that one transaction ends. */
const endedMax = 5_000;

type Change = CountChange<'webhook_delivery_counts'>;

/** Cancels deliveries in this state; what that changes in the counts. */
export async function cancelSome(
  tx: Transaction,
  webhookId: string,
  from: 'pending' | 'delivering',
  now: number,
): Promise<Change[]> {
  const cancelled = await cancelDeliveries(tx, webhookId, from, now, endedMax);
  const change: Change = { kind: { webhook_id: webhookId }, from, to: 'cancelled' };
  return Array.from({ length: cancelled }, () => change);
}

/** Deletes a webhook that the transaction has locked, and what was sent to it. */
export async function removeWebhook(tx: Transaction, id: string): Promise<void> {
  await updateWebhook(tx, id, { active: 0, removed: 1 });
  await deleteSome(tx, id);
}

async function deleteSome(tx: Transaction, id: string): Promise<void> {
  if (await deleteDeliveriesOf(tx, id, endedMax)) await deleteWebhook(tx, id);
}

/** Goes on where transactions have left something to end. */
export async function endLeftovers(database: Database, now: number, writer: Writer): Promise<void> {
  const id = await findInactive(database.read);
  if (id !== undefined) {
    await database.write(async (tx) => {
      const [standing] = await lockStandings(tx, [id]);
      if (standing?.active !== 0) return;
      await changeDeliveryCounts(tx, writer, await cancelSome(tx, id, 'pending', now));
    });
  }
  if (!(await isAnyRemoved(database.read))) return;
  await database.write(async (tx) => {
    const removed = await lockRemovedWebhook(tx);
    if (removed !== undefined) await deleteSome(tx, removed);
  });
}
