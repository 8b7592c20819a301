/** Every query on agents. */
import { type RawBuilder, type Selectable, sql, type Updateable } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { locked } from '../../adapters/database/locked.ts';
import { bytesOf, cutPage, type PageAsked } from '../../adapters/database/page-bytes.ts';
import { firstRow } from '../../adapters/database/statement.ts';
import type { AgentsTable } from '../../adapters/database/tables.ts';

export type AgentRow = Selectable<AgentsTable>;
/** With the most of its runs that go on at a time, null for any number. */
export type LimitedAgent = AgentRow & { readonly max_concurrency: number | null };

/** `limits` before the id of an agent is the name of its limit. */
const maxConcurrency = (limits: RawBuilder<string>) =>
  sql<number | null>`(select places from gate_settings where name = ${limits} || agents.id)`.as(
    'max_concurrency',
  );

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

const agentById = (isLocked: boolean) =>
  firstRow<{ organizationId: string; id: string; limits: string }>()((db, p, dialect) => {
    const query = db
      .selectFrom('agents')
      .selectAll()
      .select(maxConcurrency(p('limits')))
      .where('organization_id', '=', p('organizationId'))
      .where('id', '=', p('id'));
    return isLocked ? locked(dialect, query) : query;
  });
export const findAgent = agentById(false);
/** Like `findAgent`, and locks the row until the transaction ends. */
export const lockAgent = agentById(true);

/** The columns that can be long. */
const sizedColumns = [
  'description',
  'instructions',
  'variables',
  'skills',
  'approvals',
  'tool_rules',
  'guards',
  'agents',
  'metadata',
  'model_settings',
  'fallback_models',
] as const;

/**
 * A page of agents, newest first, and the total. `next` is the offset of the next page when this one was
 * cut because of its size in bytes.
 */
export async function listAgents(
  db: Handle,
  organizationId: string,
  page: PageAsked,
  limits: string,
) {
  const query = db.kysely.selectFrom('agents').where('organization_id', '=', organizationId);
  const newest = query.orderBy('created_at', 'desc').orderBy('id', 'desc');
  const total = await countOf(query);
  const sizes = await newest
    .select(['id', bytesOf(...sizedColumns).as('bytes')])
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const { rows, next } = cutPage(sizes, page);
  if (rows.length === 0) return { agents: [], total, next };
  const ids = rows.map(({ id }) => id);
  const agents = await newest
    .selectAll()
    .select(maxConcurrency(sql`${limits}`))
    .where('id', 'in', ids)
    .execute();
  return { agents, total, next };
}

/** The existing ones of these agents, with the agents that they name. */
export async function listCalledAgents(
  db: Handle,
  organizationId: string,
  ids: readonly string[],
): Promise<
  Pick<AgentRow, 'id' | 'name' | 'description' | 'status' | 'skills' | 'agents' | 'guards'>[]
> {
  if (ids.length === 0) return [];
  return db.kysely
    .selectFrom('agents')
    .select(['id', 'name', 'description', 'status', 'skills', 'agents', 'guards'])
    .where('organization_id', '=', organizationId)
    .where('id', 'in', ids)
    .orderBy('id')
    .execute();
}

/** Another agent that names the agent. Ids contain no wildcard of LIKE, so the pattern needs no escaping. */
export function findAgentNaming(db: Handle, organizationId: string, id: string) {
  return db.kysely
    .selectFrom('agents')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('id', '<>', id)
    .where('agents', 'like', `%"${id}"%`)
    .limit(1)
    .executeTakeFirst();
}

/** Changes an agent; undefined when there is none. */
export function updateAgent(
  tx: Transaction,
  organizationId: string,
  id: string,
  changes: Updateable<AgentsTable>,
) {
  return tx.kysely
    .updateTable('agents')
    .set(changes)
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
}

export async function deleteAgent(tx: Transaction, organizationId: string, id: string) {
  await tx.kysely
    .deleteFrom('agents')
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .execute();
}
