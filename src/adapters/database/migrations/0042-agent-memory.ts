/** What an agent may do with its memory, and how much of it comes into its prompts by itself. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('agents')
    .addColumn('memory', 'text', (c) => c.notNull().defaultTo('read_write'))
    .execute();
  await db.schema.alterTable('agents').addColumn('recall', 'text').execute();
}
