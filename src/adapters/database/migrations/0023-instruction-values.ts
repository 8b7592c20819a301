/** Adds the variables of agents, and the values that a job's instructions were filled with. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table agents add column variables text default '{}' not null`).execute(db);
  await sql.raw(`alter table jobs add column instruction_values text`).execute(db);
}
