/** Calls of models for embeddings that have reserved tokens of a budget, until they end: no run has a journal of them. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('embedding_calls')
    .addColumn('id', 'text', (c) => c.primaryKey().notNull())
    .addColumn('organization_id', 'text', (c) => c.notNull())
    .addColumn('owner_kind', 'text', (c) => c.notNull())
    .addColumn('owner_id', 'text', (c) => c.notNull())
    .addColumn('model', 'text', (c) => c.notNull())
    .addColumn('reserved_at', 'bigint', (c) => c.notNull())
    .addColumn('reserved', 'bigint', (c) => c.notNull())
    .addColumn('reserved_cost', 'bigint', (c) => c.notNull())
    .addColumn('expected', 'bigint', (c) => c.notNull())
    .addColumn('price', 'text')
    .addColumn('lost_at', 'bigint', (c) => c.notNull())
    .execute();
  await db.schema
    .createIndex('embedding_calls_lost_at')
    .on('embedding_calls')
    .column('lost_at')
    .execute();
}
