/** Adds the slots of a process to its heartbeat. Earlier versions leave the column empty. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table processes add column slots text default '{}' not null`.execute(db);
}
