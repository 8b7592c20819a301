/** Drops two functions of PostgreSQL with which the earliest installations searched memories. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  if (dialect === 'sqlite') return;
  await sql`drop function if exists memory_search(tsquery, integer)`.execute(db);
  await sql`drop function if exists memory_newest(tsquery, integer)`.execute(db);
}
