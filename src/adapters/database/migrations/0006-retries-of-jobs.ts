/** Adds an index of retries: a retry of many jobs leaves out those that have one. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index jobs_retry_of on jobs (retry_of) where retry_of is not null`.execute(db);
}
