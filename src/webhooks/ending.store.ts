/** The queries that end deliveries with their webhook. */
import { type SqlBool, sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import { idIn, idsParam } from '../database/ids-in.ts';
import { statement } from '../database/statement.ts';

/** Cancels deliveries of a webhook that are in this state, `limit` at most; how many. */
export async function cancelDeliveries(
  tx: Transaction,
  webhookId: string,
  status: 'pending' | 'delivering',
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
        .where('status', '=', sql.lit(status))
        .orderBy('id')
        .limit(limit),
    )
    .executeTakeFirst();
  return Number(result.numUpdatedRows);
}

/**
 * Deletes what was sent, or is to be sent, to a webhook, `limit` deliveries at most. Whether nothing
 * is left.
 */
export async function deleteDeliveriesOf(
  tx: Transaction,
  webhookId: string,
  limit: number,
): Promise<boolean> {
  const rows = await tx.kysely
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('webhook_id', '=', webhookId)
    .limit(limit)
    .execute();
  const ids = idsParam(rows.map(({ id }) => id));
  await tx.all(removeAttempts, { ids });
  await tx.all(removeDeliveries, { ids });
  if (rows.length === limit) return false;
  await tx.kysely
    .deleteFrom('webhook_delivery_counts')
    .where('webhook_id', '=', webhookId)
    .execute();
  return true;
}

const removeDeliveries = statement<{ ids: string }>()((db, p, dialect) =>
  db.deleteFrom('webhook_deliveries').where(idIn(dialect, p('ids'))),
);
const removeAttempts = statement<{ ids: string }>()((db, p, dialect) => {
  const ids =
    dialect === 'sqlite'
      ? sql<string>`select value from json_each(${p('ids')})`
      : sql<string>`select json_array_elements_text(${p('ids')}::json)`;
  return db.deleteFrom('webhook_attempts').where(sql<SqlBool>`delivery_id in (${ids})`);
});
