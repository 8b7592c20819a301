/** Adds how a call of a model gave it the files of its messages. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table job_steps add column files text`).execute(db);
}
