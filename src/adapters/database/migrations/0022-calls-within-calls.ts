/** Adds within which other calls a call of a skill was made, so that runs whose nested calls wait for each other are found. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table places add column within_calls text default '' not null`).execute(db);
}
