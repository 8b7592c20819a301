/** Signed-out sessions of the console, and the row of the probe of writes. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('ended_sessions')
    .addColumn('id', 'text', (c) => c.primaryKey())
    // When no cookie of the session is valid any more.
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .execute();
  await db.schema
    .createIndex('ended_sessions_expires')
    .on('ended_sessions')
    .column('expires_at')
    .execute();
  await db.schema
    .createTable('write_probes')
    .addColumn('id', 'integer', (c) => c.primaryKey())
    .addColumn('content', 'text', (c) => c.notNull())
    .execute();
}
