/** Gives conversations that began for no user, and went on for one, to that user, with what was forked from them since. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    update conversations set user_id = coalesce((
      select jobs.user_id from messages join jobs on jobs.id = messages.job_id
      where messages.conversation_id = conversations.id and messages.role = 'user' and jobs.for_user = 1
      order by messages.id limit 1
    ), user_id)
    where coalesce(forked_from, id) in (
      select coalesce(begun.forked_from, begun.id)
      from jobs join conversations as begun on begun.id = jobs.conversation_id
      where jobs.for_user = 1 and jobs.user_id <> begun.user_id
    )`.execute(db);
}
