/**
 * Adds indexes for what an organization has in the queues: the kept counts of its jobs that have not ended, and its waiting runs.
 * The latter has an expression that no other query names: the planner would take it for the sweep as well, while it believes the
 * table to be small.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [
    `create index job_counts_unended_of on job_counts (organization_id)
      where status in ('queued', 'active', 'waiting')`,
    `create index jobs_woken on jobs (organization_id, due_at) where status || '' = 'waiting'`,
  ]) {
    await sql.raw(statement).execute(db);
  }
}
