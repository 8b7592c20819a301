/**
 * The newest memories that a query finds, and how many it finds, as two functions of PostgreSQL. `memory_search` of 0004
 * stays for the instances of an earlier version that run until they are replaced.
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  if (dialect === 'sqlite') return;
  // What frequent words find is mostly found among the last rows, so these are read first. They are few, because long
  // memories take long to compare. PostgreSQL evaluates `found` only where these rows are not enough.
  await sql`create function memory_newest(query tsquery, newest integer)
    returns json language sql stable set enable_seqscan to off
    as 'with walked as materialized (
        select rowid from (
          select rowid, tokens from memory_index order by rowid desc
          limit case when newest <= 1000 then 4 * newest else 0 end) as latest
        where tokens @@ query limit newest),
      found as materialized (
        select rowid from memory_index where tokens @@ query order by rowid desc limit newest)
      select case when (select count(*) from walked) = newest
        then array_to_json(array(select rowid from walked order by rowid desc))
        else array_to_json(array(select rowid from found order by rowid desc)) end'
  `.execute(db);
  await sql`create function memory_count(query tsquery)
    returns bigint language sql stable set enable_seqscan to off
    as 'select count(*) from memory_index where tokens @@ query'
  `.execute(db);
}
