/** What a process says that it can do, so that the others know when all of them can. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('processes')
    // A process of an older version does not write it, and so announces nothing.
    .addColumn('capabilities', 'text', (c) => c.notNull().defaultTo('[]'))
    .execute();
}
