/**
 * What PostgreSQL needs to show the newest jobs and conversations of any kind: all that a job is
 * counted by, then its id. The kinds that there are stand in the counts, so that whatever a list is
 * narrowed by, it takes the newest of each kind and nothing else. (SQLite, with one process and a
 * fraction of the rows, walks past the others.)
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  if (dialect === 'sqlite') return;
  await sql`create index jobs_listed on jobs
    (organization_id, agent_id, skill_category, skill_name, skill_version, trigger_type, status, id)`.execute(
    db,
  );
  // The metrics add these up; a count that changes touches no index.
  await sql`create index job_counts_unended on job_counts (trigger_type, status)
    where status in ('queued', 'active')`.execute(db);
  // Without the status, so that the end of a conversation touches no index; of those that failed there
  // is an index by a column that the others never change.
  await sql`create index conversations_listed on conversations
    (organization_id, agent_id, trigger_type, id)`.execute(db);
  await sql`alter table conversations
    add column failed boolean generated always as (status = 'failed') stored`.execute(db);
  await sql`create index conversations_failed on conversations
    (organization_id, agent_id, trigger_type, id) where failed`.execute(db);
}
