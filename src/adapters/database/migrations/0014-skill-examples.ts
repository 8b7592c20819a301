/** The examples of a skill, for those who are to try it. Each is stored at the next start. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('skills')
    .addColumn('examples', 'text', (c) => c.notNull().defaultTo('[]'))
    .execute();
}
