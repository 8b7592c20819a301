/** The field of a skill's input that holds the time limit of its attempts; null for none. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('skills').addColumn('timeout_field', 'text').execute();
}
