/** Adds whether the newest job of a key was made or changed by a debounce, whose maximum counts from the first of its requests. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  const statement = `alter table job_keys add column is_debounced integer default 0 not null`;
  await sql.raw(statement).execute(db);
}
