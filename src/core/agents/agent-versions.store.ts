/** Every query on the versions of agents. */
import type { Insertable, Selectable } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { firstRow } from '../../adapters/database/statement.ts';
import type { AgentVersionsTable } from '../../adapters/database/tables.ts';

export type VersionRow = Selectable<AgentVersionsTable>;

/** The agent that versions belong to. */
export interface OfAgent {
  readonly organizationId: string;
  readonly agentId: string;
}

/** Adds a version, unless it is recorded already. */
export async function insertVersion(
  tx: Transaction,
  row: Insertable<AgentVersionsTable>,
): Promise<void> {
  await tx.kysely
    .insertInto('agent_versions')
    .values(row)
    .onConflict((conflict) => conflict.columns(['organization_id', 'agent_id', 'n']).doNothing())
    .execute();
}

export const findVersion = firstRow<OfAgent & { n: number }>()((db, p) =>
  db
    .selectFrom('agent_versions')
    .selectAll()
    .where('organization_id', '=', p('organizationId'))
    .where('agent_id', '=', p('agentId'))
    .where('n', '=', p('n')),
);

function versionsOf(db: Handle | Transaction, { organizationId, agentId }: OfAgent) {
  return db.kysely
    .selectFrom('agent_versions')
    .where('organization_id', '=', organizationId)
    .where('agent_id', '=', agentId);
}

/** A page of versions without their fields, newest first, and the total. */
export async function listVersions(db: Handle, agent: OfAgent, page: PageAsked) {
  const query = versionsOf(db, agent);
  const rows = await query
    .select(['n', 'changed', 'restored_from', 'created_at'])
    .orderBy('n', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  return { rows, total: await countOf(query) };
}

/** The newest version below `n`. */
export function findVersionBefore(db: Handle, agent: OfAgent, n: number) {
  return versionsOf(db, agent)
    .selectAll()
    .where('n', '<', n)
    .orderBy('n', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/** Deletes the oldest versions below `n` that no job names, `max` at most. */
export async function deleteUnnamed(
  tx: Transaction,
  agent: OfAgent,
  n: number,
  max: number,
): Promise<void> {
  const unnamed = await versionsOf(tx, agent)
    .select('n')
    .where('n', '<', n)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('jobs')
            .select('jobs.id')
            .where('jobs.organization_id', '=', agent.organizationId)
            .where('jobs.agent_id', '=', agent.agentId)
            .where('jobs.agent_version', 'is not', null)
            .whereRef('jobs.agent_version', '=', 'agent_versions.n'),
        ),
      ),
    )
    .orderBy('n')
    .limit(max)
    .execute();
  if (unnamed.length === 0) return;
  await tx.kysely
    .deleteFrom('agent_versions')
    .where('organization_id', '=', agent.organizationId)
    .where('agent_id', '=', agent.agentId)
    .where(
      'n',
      'in',
      unnamed.map((row) => row.n),
    )
    .execute();
}

export async function deleteVersions(tx: Transaction, agent: OfAgent): Promise<void> {
  await tx.kysely
    .deleteFrom('agent_versions')
    .where('organization_id', '=', agent.organizationId)
    .where('agent_id', '=', agent.agentId)
    .execute();
}
