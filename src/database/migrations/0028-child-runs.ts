/** Which runs wait for a job that they have started, for the sweep that ends such waits. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index job_steps_child_runs on job_steps (job_id)
    where kind = 'run' and status = 'waiting'`.execute(db);
}
