/** Adds the guards of agents, and what a guard has decided about a text. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table agents add column guards text default '[]' not null`).execute(db);
  await sql.raw(`alter table job_steps add column guard text`).execute(db);
}
