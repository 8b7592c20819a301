/** Every query on webhooks. */

import { type Selectable, sql, type Updateable } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn } from '../../adapters/database/ids-in.ts';
import { locked } from '../../adapters/database/locked.ts';
import { allRows, firstRow, listOf, statement } from '../../adapters/database/statement.ts';
import type { WebhooksTable } from '../../adapters/database/tables.ts';
import { allAgents } from '../../kernel/ids.ts';

export type WebhookRow = Selectable<WebhooksTable>;

export async function insertWebhook(tx: Transaction, row: WebhookRow): Promise<void> {
  await tx.insert('webhooks', [row]);
}

function webhooksOf(db: Handle, organizationId: string) {
  return db.kysely
    .selectFrom('webhooks')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('removed', '=', 0);
}

export function findWebhook(db: Handle, organizationId: string, id: string) {
  return webhooksOf(db, organizationId).where('id', '=', id).executeTakeFirst();
}

/** Like `findWebhook`, and locks the row: no other transaction changes the webhook before this one ends. */
export function lockWebhook(tx: Transaction, organizationId: string, id: string) {
  const query = webhooksOf(tx, organizationId).where('id', '=', id);
  return locked(tx.dialect, query).executeTakeFirst();
}

/** All webhooks of an organization, newest first. */
export function listWebhooks(db: Handle, organizationId: string): Promise<WebhookRow[]> {
  return webhooksOf(db, organizationId).orderBy('id', 'desc').execute();
}

export async function updateWebhook(
  tx: Transaction,
  id: string,
  changes: Updateable<WebhooksTable>,
): Promise<void> {
  await tx.kysely.updateTable('webhooks').set(changes).where('id', '=', id).execute();
}

/** Marks webhooks, which the transaction has locked, as deleted: no query for clients finds them after that. */
export const markRemoved = allRows<{ ids: readonly string[] }, Transaction>()((db, p, dialect) =>
  db
    .updateTable('webhooks')
    .set((eb) => ({ active: eb.lit(0), removed: eb.lit(1) }))
    .where(idIn(dialect, listOf(p, 'ids'))),
);

/** Whether any deleted webhook still has deliveries to delete. */
export async function isAnyRemoved(db: Handle): Promise<boolean> {
  const row = await db.kysely
    .selectFrom('webhooks')
    .select('id')
    .where('removed', '=', sql.lit(1))
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Locks the first deleted webhook that still has deliveries to delete. */
export async function lockRemovedWebhook(tx: Transaction): Promise<string | undefined> {
  const query = tx.kysely
    .selectFrom('webhooks')
    .select('id')
    .where('removed', '=', sql.lit(1))
    .orderBy('id')
    .limit(1);
  const free = locked(tx.dialect, query, (unlocked) => unlocked.forUpdate().skipLocked());
  return (await free.executeTakeFirst())?.id;
}

export async function deleteWebhook(tx: Transaction, id: string): Promise<void> {
  await tx.kysely.deleteFrom('webhooks').where('id', '=', id).execute();
}

/** Locks the webhooks of an agent; their ids. */
async function lockWebhooksOfAgent(
  tx: Transaction,
  organizationId: string,
  agentId: string,
): Promise<string[]> {
  const query = tx.kysely
    .selectFrom('webhooks')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('agent_id', '=', agentId)
    .where('removed', '=', 0)
    .orderBy('id');
  const rows = await locked(tx.dialect, query).execute();
  return rows.map(({ id }) => id);
}

/**
 * The webhooks of a deleted agent are marked. The sweep deletes their deliveries, because those may be more
 * than one transaction should hold.
 */
export const webhooksOfAgent = {
  async remove(tx: Transaction, organizationId: string, agentId: string) {
    await markRemoved(tx, { ids: await lockWebhooksOfAgent(tx, organizationId, agentId) });
  },
};

const findActive = firstRow<object>()((db) =>
  db
    .selectFrom('webhooks')
    .select('id')
    .where('active', '=', (eb) => eb.lit(1))
    .limit(1),
);

/** Whether any webhook is active. */
export async function areAnyActive(db: Handle): Promise<boolean> {
  return (await findActive(db, {})) !== undefined;
}

const listeningColumns = ['id', 'organization_id', 'agent_id', 'events', 'active_since'] as const;
/** The columns of a webhook that decide which events it gets. */
export type ListeningWebhook = Pick<WebhookRow, (typeof listeningColumns)[number]>;

/** Active webhooks of the agents of these events; they stay active until the transaction ends. */
export async function lockActiveWebhooks(
  tx: Transaction,
  events: readonly Pick<WebhookRow, 'organization_id' | 'agent_id'>[],
): Promise<ListeningWebhook[]> {
  if (events.length === 0) return [];
  const query = tx.kysely
    .selectFrom('webhooks')
    .select(listeningColumns)
    .where('organization_id', 'in', [...new Set(events.map((event) => event.organization_id))])
    // This also locks agents of the same name in the other organizations, which is harmless.
    .where('agent_id', 'in', [...new Set([allAgents, ...events.map((event) => event.agent_id)])])
    .where('active', '=', 1)
    .orderBy('id');
  return locked(tx.dialect, query, (unlocked) => unlocked.forShare()).execute();
}

/** The columns of a webhook that a request needs: the address and the signing secret. */
export type Target = Awaited<ReturnType<typeof findTargets>>[number];

export const findTargets = allRows<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('webhooks')
    .select(['id', 'organization_id', 'url', 'host', 'secret', 'secret_sealed'])
    .where(idIn(dialect, listOf(p, 'ids'))),
);

/** The columns of a webhook that its deliveries read and change. */
export type HealthRow = Pick<WebhookRow, 'id' | 'active' | 'failing' | 'consecutive_failures'>;

/** Locks the health of webhooks; deleted ones are left out. */
export const lockHealth = allRows<{ ids: readonly string[] }, Transaction>()((db, p, dialect) => {
  const query = db
    .selectFrom('webhooks')
    .select(['id', 'active', 'failing', 'consecutive_failures'])
    .where(idIn(dialect, listOf(p, 'ids')))
    .where('removed', '=', 0)
    .orderBy('id');
  return locked(dialect, query);
});

const updateHealth = statement<HealthRow & { last_delivery_at: number }>()((db, p) =>
  db
    .updateTable('webhooks')
    .set({
      active: p('active'),
      failing: p('failing'),
      consecutive_failures: p('consecutive_failures'),
      last_delivery_at: p('last_delivery_at'),
      // Switching a webhook off is a change of it, also when its deliveries do so.
      updated_at: sql<number>`case when active = ${p('active')} then updated_at
        else ${p('last_delivery_at')} end`,
    })
    .where('id', '=', p('id')),
);

export async function setHealth(
  tx: Transaction,
  rows: readonly HealthRow[],
  lastDeliveryAt: number,
): Promise<void> {
  await tx.each(
    updateHealth,
    rows.map((row) => ({ ...row, last_delivery_at: lastDeliveryAt })),
  );
}
