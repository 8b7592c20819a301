/** Adds of which conversation another one is a fork. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const statements = [
    `alter table conversations add column forked_from text`,
    `create index conversations_forked on conversations (forked_from) where forked_from is not null`,
  ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
