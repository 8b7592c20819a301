/** The queries that end the deliveries of a webhook that is switched off or deleted. */
import { type SqlBool, sql } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';

/** Cancels up to `limit` pending deliveries of a webhook; how many it cancelled. */
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
    // When PostgreSQL has waited for a claim that held the row, it checks only this condition again.
    .where('status', '=', sql.lit('pending'))
    .executeTakeFirst();
  return Number(result.numUpdatedRows);
}

/** Ids of deliveries of a webhook, of any status. */
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
 * Deletes counts that are zero, of one webhook or of all. Skips rows that another transaction has
 * locked: transactions that fold counts lock them in another order, so waiting could deadlock.
 */
export async function deleteEmptyCounts(tx: Transaction, webhookId?: string): Promise<void> {
  const isEmpty = sql<SqlBool>`count = 0`;
  const matching =
    webhookId === undefined ? isEmpty : sql<SqlBool>`${isEmpty} and webhook_id = ${webhookId}`;
  const unlocked = sql<SqlBool>`ctid in (select ctid from webhook_delivery_counts where ${matching}
    for update skip locked)`;
  await tx.kysely
    .deleteFrom('webhook_delivery_counts')
    .where(tx.dialect === 'sqlite' ? matching : unlocked)
    .execute();
}
