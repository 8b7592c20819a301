/**
 * Adds the agents' setting of memories that form after a conversation; of a conversation, when its memories are to be
 * formed and up to which message they have been; and of a memory, the message that it was formed of.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of [
    `alter table agents add column memory_formation text`,
    `alter table conversations add column forms_at bigint`,
    `alter table conversations add column formed_through text`,
    `create index conversations_forming on conversations (forms_at) where forms_at is not null`,
    `alter table memories add column message_id text`,
  ]) {
    await sql.raw(statement).execute(db);
  }
}
