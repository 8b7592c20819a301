/** Which trigger has begun a job, so that whoever looks at the job gets there. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index trigger_calls_of_job on trigger_calls (job_id) where job_id is not null`.execute(
    db,
  );
}
