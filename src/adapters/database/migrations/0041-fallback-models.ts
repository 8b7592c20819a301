/** The models that stand in for the one of an agent, and which model wrote a message. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('agents')
    .addColumn('fallback_models', 'text', (c) => c.notNull().defaultTo('[]'))
    .execute();
  await db.schema.alterTable('messages').addColumn('model', 'text').execute();
}
