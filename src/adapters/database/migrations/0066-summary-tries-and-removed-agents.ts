/**
 * When a conversation whose summaries failed is summarized again, and which agents were deleted lately, so that a new
 * agent of the same id is told apart from them.
 */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('conversations')
    .addColumn('failed_summaries', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  await db.schema.alterTable('conversations').addColumn('next_summary_at', 'bigint').execute();
  await db.schema
    .alterTable('conversations')
    .addColumn('failed_summaries_version', 'integer')
    .execute();
  await db.schema
    .createTable('removed_agents')
    .addColumn('organization_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('removed_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('removed_agents_pkey', ['organization_id', 'agent_id'])
    .execute();
}
