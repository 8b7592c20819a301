/** The queries that end deliveries with their webhook. */
import { type SqlBool, sql } from 'kysely';
import type { Transaction } from '../database/database.ts';

/** Cancels pending deliveries of a webhook, `limit` at most; how many. */
export async function cancelDeliveries(
  tx: Transaction,
  webhookId: string,
  now: number,
  limit: number,
): Promise<number> {
  const result = await tx.kysely
    .updateTable('webhook_deliveries')
    .set({ status: 'cancelled', due_at: null, finished_at: now })
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('webhook_deliveries')
        .select('id')
        .where('webhook_id', '=', webhookId)
        .where('status', '=', sql.lit('pending'))
        .orderBy('id')
        .limit(limit),
    )
    // PostgreSQL waits for a claim that holds the row, and then asks only this condition again.
    .where('status', '=', sql.lit('pending'))
    .executeTakeFirst();
  return Number(result.numUpdatedRows);
}

/** Ids of deliveries of a webhook, whatever has become of them. */
export async function findDeliveriesOf(
  tx: Transaction,
  webhookId: string,
  limit: number,
): Promise<string[]> {
  const rows = await tx.kysely
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('webhook_id', '=', webhookId)
    .orderBy('id')
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/**
 * Deletes counts of nothing, of one webhook or of all. Leaves alone what somebody is changing just
 * now, as whoever folds counts takes them in another order.
 */
export async function deleteEmptyCounts(tx: Transaction, webhookId?: string): Promise<void> {
  const isEmpty = sql<SqlBool>`count = 0`;
  const those =
    webhookId === undefined ? isEmpty : sql<SqlBool>`${isEmpty} and webhook_id = ${webhookId}`;
  const free = sql<SqlBool>`ctid in (select ctid from webhook_delivery_counts where ${those}
    for update skip locked)`;
  await tx.kysely
    .deleteFrom('webhook_delivery_counts')
    .where(tx.dialect === 'sqlite' ? those : free)
    .execute();
}
