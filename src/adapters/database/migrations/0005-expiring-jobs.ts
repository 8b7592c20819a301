/**
 * Adds the moment until which a job must have begun. The index has only the jobs that may still expire, which the sweep
 * searches every second.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table jobs add column expires_at bigint`.execute(db);
  await sql`create index jobs_expiring on jobs (expires_at)
    where status = 'queued' and started_at is null and expires_at is not null`.execute(db);
}
