/** What the console needs of its own: the administrator's key in each organization, and what signs sessions. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('api_keys')
    .addColumn('console', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  // One that may be used; those that were revoked are kept like any other.
  await sql`create unique index api_keys_console on api_keys (organization_id) where console = 1 and enabled = 1`.execute(
    db,
  );
  await db.schema
    .createTable('console_secrets')
    .addColumn('id', 'integer', (c) => c.primaryKey())
    .addColumn('secret', 'text', (c) => c.notNull())
    .execute();
}
