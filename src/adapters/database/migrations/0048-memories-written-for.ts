/**
 * For whose run a memory of an agent's own was written: it outlives the job that tells. Memories whose jobs are gone
 * already cannot be told apart.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('memories').addColumn('written_for', 'text').execute();
  await sql`update memories set written_for = (
      select jobs.user_id from jobs where jobs.id = memories.job_id and jobs.for_user = 1
    ) where job_id is not null and user_id is null`.execute(db);
  await sql`create index memories_written_for on memories (written_for)
    where written_for is not null`.execute(db);
}
