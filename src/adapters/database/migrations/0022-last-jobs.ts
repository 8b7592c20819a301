/** When a process last began a job, whether from a queue or as it accepted the job itself. */
import type { Kysely } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('processes')
    // A process of the version before does not write it.
    .addColumn('last_job_at', 'bigint', (c) => c.notNull().defaultTo(0))
    .execute();
}
