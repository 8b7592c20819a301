/**
 * Tokens are added up without reading the messages, which may be long. Only messages that a model was
 * asked for have an entry, so others cost nothing.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create index messages_with_tokens on messages
    (conversation_id, job_id, id, prompt_tokens, completion_tokens, unreported)
    where prompt_tokens + completion_tokens + unreported > 0`.execute(db);
}
