/** Triggers: the addresses under which the outside world starts runs. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const clustered = clusteredIn(dialect);

  await clustered(
    db.schema
      .createTable('agent_triggers')
      .addColumn('id', 'text', (c) => c.primaryKey().notNull())
      .addColumn('organization_id', 'text', (c) => c.notNull())
      .addColumn('api_key_id', 'text', (c) => c.notNull())
      .addColumn('agent_id', 'text', (c) => c.notNull())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('skill_category', 'text', (c) => c.notNull())
      .addColumn('skill_name', 'text', (c) => c.notNull())
      .addColumn('skill_version', 'text', (c) => c.notNull())
      .addColumn('input', 'text', (c) => c.notNull())
      .addColumn('mapping', 'text')
      .addColumn('rate_limit', 'integer', (c) => c.notNull())
      .addColumn('signing_secret', 'text')
      .addColumn('active', 'integer', (c) => c.notNull())
      .addColumn('token_hash', 'text', (c) => c.notNull().unique())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull()),
  ).execute();
  await sql`create index agent_triggers_newest on agent_triggers (organization_id, id)`.execute(db);
  await sql`create index agent_triggers_of_agent on agent_triggers (organization_id, agent_id)`.execute(
    db,
  );
}
