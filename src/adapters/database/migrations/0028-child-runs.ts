/** Which steps wait for a job that their run has started, and that job, for the sweep that ends such waits. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index job_steps_child_runs on job_steps (job_id, n)
    where kind = 'run' and status = 'waiting'`.execute(db);
  await sql`create index jobs_child_of_step on jobs (parent_job_id, parent_step)
    where parent_job_id is not null`.execute(db);
}
