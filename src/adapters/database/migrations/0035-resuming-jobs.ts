/** Adds an index of the unended jobs that go on from the records of others, by their conversations: few jobs are in it. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index jobs_resuming on jobs (conversation_id)
    where resumes is not null and due_at is not null`.execute(db);
}
