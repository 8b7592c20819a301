/** The queries on triggers. */
import type { Selectable, Updateable } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { locked } from '../../adapters/database/locked.ts';
import { namesAgent } from '../../adapters/database/names-agent.ts';
import { newestOfSkill } from '../../adapters/database/of-skill.ts';
import { bytesOf, cutPage, type PageAsked } from '../../adapters/database/page-bytes.ts';
import { firstRow } from '../../adapters/database/statement.ts';
import type { AgentTriggersTable } from '../../adapters/database/tables.ts';

export type TriggerRow = Selectable<AgentTriggersTable>;

export async function insertTrigger(tx: Transaction, row: TriggerRow): Promise<void> {
  await tx.insert('agent_triggers', [row]);
}

export const findTriggerByHash = firstRow<{ token_hash: string }>()((db, p) =>
  db.selectFrom('agent_triggers').selectAll().where('token_hash', '=', p('token_hash')),
);

function byId(db: Handle, organizationId: string, id: string) {
  return db.kysely
    .selectFrom('agent_triggers')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('id', '=', id);
}

export function findTrigger(db: Handle, organizationId: string, id: string) {
  return byId(db, organizationId, id).executeTakeFirst();
}

/** Like `findTrigger`, and locks the row until the transaction ends. */
export function lockTrigger(tx: Transaction, organizationId: string, id: string) {
  return locked(tx.dialect, byId(tx, organizationId, id)).executeTakeFirst();
}

/**
 * A page of triggers, newest first, their total, and the offset of the next page where this one was cut
 * because of its size in bytes.
 */
export async function listTriggers(
  db: Handle,
  organizationId: string,
  page: PageAsked,
): Promise<{ data: TriggerRow[]; total: number; next: number | null }> {
  const query = db.kysely
    .selectFrom('agent_triggers')
    .where('organization_id', '=', organizationId);
  const total = await countOf(query);
  const sizes = await query
    .select(['id', bytesOf('input', 'mapping').as('bytes')])
    .orderBy('id', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const { rows, next } = cutPage(sizes, page);
  if (rows.length === 0) return { data: [], total, next };
  const ids = rows.map(({ id }) => id);
  const data = await query.selectAll().where('id', 'in', ids).orderBy('id', 'desc').execute();
  return { data, total, next };
}

/** Changes a trigger; undefined when there is none. */
export function updateTrigger(
  tx: Transaction,
  organizationId: string,
  id: string,
  changes: Updateable<AgentTriggersTable>,
) {
  return tx.kysely
    .updateTable('agent_triggers')
    .set(changes)
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
}

/** Deletes a trigger; its hash, or undefined when there is none. */
export async function deleteTrigger(
  tx: Transaction,
  organizationId: string,
  id: string,
): Promise<string | undefined> {
  const row = await tx.kysely
    .deleteFrom('agent_triggers')
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .returning('token_hash')
    .executeTakeFirst();
  return row?.token_hash;
}

/** Prevents the deletion of an agent that a trigger names. */
export const triggersOfAgent = {
  blocker: { noun: 'triggers', names: namesAgent('agent_triggers') },
};

/** Triggers of an organization that run a skill version, newest first, and their total. */
export const listTriggersOfSkill = newestOfSkill((kysely) =>
  kysely.selectFrom('agent_triggers').select(['id', 'name', 'agent_id', 'active']),
);
