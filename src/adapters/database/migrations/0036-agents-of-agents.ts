/** The agents that an agent may give tasks to: a JSON array of their ids. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('agents')
    .addColumn('agents', 'text', (column) => column.notNull().defaultTo('[]'))
    .execute();
}
