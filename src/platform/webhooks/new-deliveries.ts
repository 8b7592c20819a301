/** New deliveries: of events, and those that a client sends on demand. */
import type { Transaction } from '../../adapters/database/database.ts';
import type { Context } from '../../core/context/context.ts';
import { newId } from '../../kernel/ids.ts';
import { type DeliveryRow, deliveryCounts, insertDeliveries } from './deliveries.store.ts';

/** Records deliveries, without those whose event their webhook already has; sends hints after the commit. */
export async function addDeliveries(
  { queue, writer }: Context,
  tx: Transaction,
  rows: readonly DeliveryRow[],
): Promise<void> {
  const inserted = await insertDeliveries(tx, rows);
  const added = rows.filter(({ id }) => inserted.has(id));
  await deliveryCounts.change(
    tx,
    writer,
    added.map(({ webhook_id }) => ({ kind: { webhook_id }, from: null, to: 'pending' })),
  );
  tx.afterCommit(() => {
    queue.sendHints(
      'webhooks',
      added.map(({ id }) => ({ id, generation: 0, delayMs: 0 })),
    );
  });
}

/** A new delivery, due at once. */
export function newDelivery(
  fields: Pick<DeliveryRow, 'webhook_id' | 'event_id' | 'event' | 'body'> &
    Partial<Pick<DeliveryRow, 'is_test' | 'redelivery_of' | 'subject'>>,
  now: number,
): DeliveryRow {
  return {
    id: newId(),
    status: 'pending',
    attempts: 0,
    lost: 0,
    epoch: 0,
    due_at: now,
    started_at: null,
    is_test: 0,
    redelivery_of: null,
    created_at: now,
    finished_at: null,
    subject: null,
    ...fields,
  };
}
