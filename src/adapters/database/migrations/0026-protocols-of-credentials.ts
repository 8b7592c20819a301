/** Adds the protocol that an organization's provider speaks. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table credentials add column protocol text').execute(db);
}
