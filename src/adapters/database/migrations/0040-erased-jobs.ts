/** When the data of a job was erased, on behalf of its user. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('jobs').addColumn('erased_at', 'bigint').execute();
}
