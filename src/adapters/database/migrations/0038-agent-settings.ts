/** How an agent's model is called. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('agents')
    .addColumn('model_settings', 'text', (c) => c.notNull().defaultTo('{}'))
    .execute();
}
