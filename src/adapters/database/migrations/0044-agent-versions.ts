/** The versions of agents, and which of them a job had. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const clustered = clusteredIn(dialect);
  await clustered(
    db.schema
      .createTable('agent_versions')
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('agent_id', 'text', (c) => c.notNull())
      .addColumn('n', 'integer', (c) => c.notNull())
      .addColumn('fields', 'text', (c) => c.notNull())
      .addColumn('changed', 'text', (c) => c.notNull())
      .addColumn('restored_from', 'integer')
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('agent_versions_key', ['organization_id', 'agent_id', 'n']),
  ).execute();
  await db.schema
    .alterTable('agents')
    .addColumn('version', 'integer', (c) => c.notNull().defaultTo(1))
    .execute();
  await db.schema.alterTable('jobs').addColumn('agent_version', 'integer').execute();
  // Jobs that ask no model are not in it.
  await sql`create index jobs_of_agent_version on jobs (organization_id, agent_id, agent_version)
    where agent_version is not null`.execute(db);
}
