/**
 * Adds an index of the jobs of users that have not ended: they are counted, listed, and looked for by an erasure. Its term
 * differs from that of the index of all jobs of users, so that SQLite cannot take that one instead.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index jobs_open_of_user on jobs (organization_id, user_id, id)
    where for_user + 0 = 1 and due_at is not null`.execute(db);
}
