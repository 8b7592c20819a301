/** Adds the weight of an organization in turns. The index has only those that differ from the default, which workers read. */
import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table organizations add column weight integer default 1 not null`.execute(db);
  await sql`create index organizations_weighted on organizations (id) where weight <> 1`.execute(
    db,
  );
}
