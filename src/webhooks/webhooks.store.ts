/** Every query on webhooks. */
import { type Selectable, sql, type Updateable } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { idIn, idsParam } from '../database/ids-in.ts';
import { statement } from '../database/statement.ts';
import type { WebhooksTable } from '../database/tables.ts';

export type WebhookRow = Selectable<WebhooksTable>;

export async function insertWebhook(tx: Transaction, row: WebhookRow): Promise<void> {
  await tx.insert('webhooks', [row]);
}

export function findWebhook(
  db: Handle,
  organizationId: string,
  id: string,
): Promise<WebhookRow | undefined> {
  return db.kysely
    .selectFrom('webhooks')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .where('removed', '=', 0)
    .executeTakeFirst();
}

/** As `findWebhook`; nobody else changes the webhook before the transaction ends. */
export function lockWebhook(
  tx: Transaction,
  organizationId: string,
  id: string,
): Promise<WebhookRow | undefined> {
  const query = tx.kysely
    .selectFrom('webhooks')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .where('removed', '=', 0);
  return (tx.dialect === 'sqlite' ? query : query.forUpdate()).executeTakeFirst();
}

/** All webhooks of an organization, newest first. */
export function listWebhooks(db: Handle, organizationId: string): Promise<WebhookRow[]> {
  return db.kysely
    .selectFrom('webhooks')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('removed', '=', 0)
    .orderBy('id', 'desc')
    .execute();
}

export async function updateWebhook(
  tx: Transaction,
  id: string,
  changes: Updateable<WebhooksTable>,
): Promise<void> {
  await tx.kysely.updateTable('webhooks').set(changes).where('id', '=', id).execute();
}

const removal = statement<{ ids: string }>()((db, p, dialect) =>
  db
    .updateTable('webhooks')
    .set((eb) => ({ active: eb.lit(0), removed: eb.lit(1) }))
    .where(idIn(dialect, p('ids'))),
);

/** Makes webhooks that the transaction has locked such that nobody finds them any more. */
export async function markRemoved(tx: Transaction, ids: readonly string[]): Promise<void> {
  await tx.all(removal, { ids: idsParam(ids) });
}

/** Whether there are webhooks that are deleted, but not all that was sent to them. */
export async function isAnyRemoved(db: Handle): Promise<boolean> {
  const row = await db.kysely
    .selectFrom('webhooks')
    .select('id')
    .where('removed', '=', sql.lit(1))
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** The first of the webhooks that are deleted, but not all that was sent to them. */
export async function lockRemovedWebhook(tx: Transaction): Promise<string | undefined> {
  const query = tx.kysely
    .selectFrom('webhooks')
    .select('id')
    .where('removed', '=', sql.lit(1))
    .orderBy('id')
    .limit(1);
  const locked = tx.dialect === 'sqlite' ? query : query.forUpdate().skipLocked();
  return (await locked.executeTakeFirst())?.id;
}

export async function deleteWebhook(tx: Transaction, id: string): Promise<void> {
  await tx.kysely.deleteFrom('webhooks').where('id', '=', id).execute();
}

/** Ids of the webhooks of an agent; nobody else changes them before the transaction ends. */
export async function lockWebhooksOfAgent(
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
  const rows = await (tx.dialect === 'sqlite' ? query : query.forUpdate()).execute();
  return rows.map(({ id }) => id);
}

const anyActive = statement<{ except: string }>()((db, p) =>
  db
    .selectFrom('webhooks')
    .select('id')
    .where('active', '=', (eb) => eb.lit(1))
    .where('id', '<>', p('except'))
    .limit(1),
);

/** Whether any webhook is active, besides the one named. */
export async function areAnyActive(db: Handle, except = ''): Promise<boolean> {
  return (await db.first(anyActive, { except })) !== undefined;
}

const listeningColumns = ['id', 'organization_id', 'agent_id', 'events', 'active_since'] as const;
/** A webhook, as far as it decides which events it gets. */
export type ListeningWebhook = Pick<WebhookRow, (typeof listeningColumns)[number]>;

/** Active webhooks of the agents of these events; they stay active until the transaction ends. */
export async function holdActiveWebhooks(
  tx: Transaction,
  events: readonly Pick<WebhookRow, 'organization_id' | 'agent_id'>[],
): Promise<ListeningWebhook[]> {
  if (events.length === 0) return [];
  const query = tx.kysely
    .selectFrom('webhooks')
    .select(listeningColumns)
    .where('organization_id', 'in', [...new Set(events.map((event) => event.organization_id))])
    // An agent of the same name in another of the organizations is held as well, which does no harm.
    .where('agent_id', 'in', [...new Set(events.map((event) => event.agent_id))])
    .where('active', '=', 1)
    .orderBy('id');
  return (tx.dialect === 'sqlite' ? query : query.forShare()).execute();
}

/** Where deliveries go, and with what they are signed. */
export type Target = Pick<
  WebhookRow,
  'id' | 'organization_id' | 'url' | 'host' | 'secret' | 'secret_sealed'
>;

const targets = statement<{ ids: string }>()((db, p, dialect) =>
  db
    .selectFrom('webhooks')
    .select(['id', 'organization_id', 'url', 'host', 'secret', 'secret_sealed'])
    .where(idIn(dialect, p('ids'))),
);

export function findTargets(db: Handle, ids: readonly string[]): Promise<Target[]> {
  return db.all(targets, { ids: idsParam(ids) });
}

/** What the deliveries of a webhook decide by, and change. */
export type StandingRow = Pick<WebhookRow, 'id' | 'active' | 'failing' | 'consecutive_failures'>;

const standings = statement<{ ids: string }>()((db, p, dialect) => {
  const query = db
    .selectFrom('webhooks')
    .select(['id', 'active', 'failing', 'consecutive_failures'])
    .where(idIn(dialect, p('ids')))
    .where('removed', '=', 0)
    .orderBy('id');
  return dialect === 'sqlite' ? query : query.forUpdate();
});

/** Nobody else changes them before the transaction ends; those that are gone are not among them. */
export function lockStandings(tx: Transaction, ids: readonly string[]): Promise<StandingRow[]> {
  return tx.all(standings, { ids: idsParam(ids) });
}

const setStanding = statement<StandingRow & { last_delivery_at: number }>()((db, p) =>
  db
    .updateTable('webhooks')
    .set({
      active: p('active'),
      failing: p('failing'),
      consecutive_failures: p('consecutive_failures'),
      last_delivery_at: p('last_delivery_at'),
      // Switching it off is a change, whoever does it.
      updated_at: sql<number>`case when active = ${p('active')} then updated_at
        else ${p('last_delivery_at')} end`,
    })
    .where('id', '=', p('id')),
);

export async function setStandings(
  tx: Transaction,
  rows: readonly StandingRow[],
  lastDeliveryAt: number,
): Promise<void> {
  await tx.each(
    setStanding,
    rows.map((row) => ({ ...row, last_delivery_at: lastDeliveryAt })),
  );
}
