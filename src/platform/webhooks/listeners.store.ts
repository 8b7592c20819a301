/** Every query on the sessions of listeners. */
import type { Selectable } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { WebhookListenersTable } from '../../adapters/database/tables.ts';

export type ListenerRow = Selectable<WebhookListenersTable>;

export async function insertListener(tx: Transaction, row: ListenerRow): Promise<void> {
  await tx.insert('webhook_listeners', [row]);
}

/** A session that has not expired. */
export function findListener(
  db: Handle,
  { organization_id, id }: Pick<ListenerRow, 'organization_id' | 'id'>,
  now: number,
): Promise<ListenerRow | undefined> {
  return db.kysely
    .selectFrom('webhook_listeners')
    .selectAll()
    .where('organization_id', '=', organization_id)
    .where('id', '=', id)
    .where('expires_at', '>', now)
    .executeTakeFirst();
}

/** Renews a session; returns false if it has expired. */
export async function renewListener(
  tx: Transaction,
  { organization_id, id }: Pick<ListenerRow, 'organization_id' | 'id'>,
  expiresAt: number,
): Promise<boolean> {
  const { numUpdatedRows } = await tx.kysely
    .updateTable('webhook_listeners')
    .set({ expires_at: expiresAt })
    .where('organization_id', '=', organization_id)
    .where('id', '=', id)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

export async function anyExpiredListener(db: Handle, now: number): Promise<boolean> {
  const row = await db.kysely
    .selectFrom('webhook_listeners')
    .select('id')
    .where('expires_at', '<=', now)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

export async function deleteExpiredListeners(tx: Transaction, now: number): Promise<void> {
  await tx.kysely.deleteFrom('webhook_listeners').where('expires_at', '<=', now).execute();
}
