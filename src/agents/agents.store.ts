/** Every query on agents. */
import type { Selectable, Updateable } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { locked } from '../database/locked.ts';
import { bytesOf, cutPage, type PageAsked } from '../database/page-bytes.ts';
import { statement } from '../database/statement.ts';
import type { AgentsTable } from '../database/tables.ts';

export type AgentRow = Selectable<AgentsTable>;

/** Adds an agent; false when the organization has one of that id. */
export async function insertAgent(tx: Transaction, row: AgentRow): Promise<boolean> {
  const rows = await tx.kysely
    .insertInto('agents')
    .values(row)
    .onConflict((conflict) => conflict.columns(['organization_id', 'id']).doNothing())
    .returning('id')
    .execute();
  return rows.length > 0;
}

const byId = statement<{ organization_id: string; id: string }>()((db, p) =>
  db
    .selectFrom('agents')
    .selectAll()
    .where('organization_id', '=', p('organization_id'))
    .where('id', '=', p('id')),
);

export function findAgent(
  db: Handle,
  organizationId: string,
  id: string,
): Promise<AgentRow | undefined> {
  return db.first(byId, { organization_id: organizationId, id });
}

const byIdLocked = statement<{ organization_id: string; id: string }>()((db, p, dialect) => {
  const query = db
    .selectFrom('agents')
    .selectAll()
    .where('organization_id', '=', p('organization_id'))
    .where('id', '=', p('id'));
  return locked(dialect, query);
});

/** Like `findAgent`, and locks the row until the transaction ends. */
export function lockAgent(
  tx: Transaction,
  organizationId: string,
  id: string,
): Promise<AgentRow | undefined> {
  return tx.first(byIdLocked, { organization_id: organizationId, id });
}

/**
 * A page of agents, newest first, and the total. `next` is the offset of the next page when this one was
 * cut because of its size in bytes.
 */
export async function listAgents(
  db: Handle,
  organizationId: string,
  page: PageAsked,
): Promise<{ agents: AgentRow[]; total: number; next: number | null }> {
  const query = db.kysely.selectFrom('agents').where('organization_id', '=', organizationId);
  const row = await query.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst();
  const sizes = await query
    .select(['id', bytesOf('description', 'instructions', 'skills', 'metadata').as('bytes')])
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const { rows, next } = cutPage(sizes, page);
  const total = Number(row?.n ?? 0);
  if (rows.length === 0) return { agents: [], total, next };
  const ids = rows.map(({ id }) => id);
  const agents = await query
    .selectAll()
    .where('id', 'in', ids)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute();
  return { agents, total, next };
}

/** Changes an agent; undefined when there is none. */
export function updateAgent(
  tx: Transaction,
  organizationId: string,
  id: string,
  changes: Updateable<AgentsTable>,
): Promise<AgentRow | undefined> {
  return tx.kysely
    .updateTable('agents')
    .set(changes)
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
}

export async function deleteAgent(
  tx: Transaction,
  organizationId: string,
  id: string,
): Promise<void> {
  await tx.kysely
    .deleteFrom('agents')
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .execute();
}
