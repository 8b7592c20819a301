/** The trigger that started a job, so that a client can get from the job to it. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index trigger_calls_of_job on trigger_calls (job_id) where job_id is not null`.execute(
    db,
  );
}
