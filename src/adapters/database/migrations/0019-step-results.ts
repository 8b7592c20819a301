/** What the steps of a run's own code gave, so that a repeated attempt does not take them again. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('job_steps').addColumn('result', 'text').execute();
}
