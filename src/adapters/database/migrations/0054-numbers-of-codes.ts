/**
 * SQLite gives the number of a deleted last row to the next one. Who reads codes after the last number that it has seen
 * would miss that one, so no number is given twice. PostgreSQL's sequences never do.
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  if (dialect !== 'sqlite') return;
  await db.schema
    .createTable('memory_codes_numbered')
    .addColumn('n', 'integer', (c) => c.primaryKey().autoIncrement().notNull())
    .addColumn('seq', 'bigint', (c) => c.notNull())
    .addColumn('owner', 'bigint', (c) => c.notNull())
    .addColumn('together', 'bigint')
    .addColumn('model', 'bigint', (c) => c.notNull())
    .addColumn('code', 'blob', (c) => c.notNull())
    .execute();
  await sql`insert into memory_codes_numbered (n, seq, owner, together, model, code)
    select n, seq, owner, together, model, code from memory_codes order by n`.execute(db);
  await db.schema.dropTable('memory_codes').execute();
  await db.schema.alterTable('memory_codes_numbered').renameTo('memory_codes').execute();
  await sql`create unique index memory_codes_seq on memory_codes (seq)`.execute(db);
  await sql`create index memory_codes_owner on memory_codes (owner, model, n)`.execute(db);
  await sql`create index memory_codes_together on memory_codes (together, model, n)
    where together is not null`.execute(db);
}
