/**
 * Adds for how many days a file is kept after a use, where its client says so, and how many tokens a document counts in a
 * call, once it has been read.
 */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table files add column retention_days integer`.execute(db);
  await sql`alter table files add column tokens bigint`.execute(db);
}
