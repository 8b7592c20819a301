/** Adds the rules of agents about the calls of tools, and what a rule has decided about a call. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table agents add column tool_rules text default '[]' not null`).execute(db);
  await sql.raw(`alter table job_steps add column rule text`).execute(db);
}
