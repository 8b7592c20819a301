/**
 * The newest memories that a query finds, as a function of PostgreSQL that knows their owners. `memory_newest` of 0052
 * read the last rows of all owners, and where those were not enough, the planner read all rows of the table in the order
 * of their numbers. It stays for the instances of an earlier version that run until they are replaced.
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';

/** How many of the last memories of an owner are read first; none where more than 500 are wanted. */
const latestMax = sql.raw('case when newest <= 500 then 8 * newest else 0 end');

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  if (dialect === 'sqlite') return;
  // What frequent words find is mostly found among the last memories of the owners, so these are read first. PostgreSQL
  // evaluates `found` only where they are not enough; `+ 0` keeps it from reading all rows by their numbers.
  await sql`create function memory_newest_of(owners bigint[], query tsquery, newest integer)
    returns json language sql stable
    set enable_seqscan to off
    set enable_hashjoin to off
    set enable_mergejoin to off
    set max_parallel_workers_per_gather to 0
    as 'with latest as (
        (select id, seq from unnest(owners) as asked(own) cross join lateral (
          select id, seq from memories where owner = own order by id desc
          limit ${latestMax}) as of_owner)
        union
        (select id, seq from unnest(owners) as asked(own) cross join lateral (
          select id, seq from memories where together = own order by id desc
          limit ${latestMax}) as of_all)),
      walked as materialized (
        select rowid from (
          select seq from latest order by id desc
          limit ${latestMax}) as last
        join memory_index on rowid = seq
        where tokens @@ query order by rowid desc limit newest),
      found as materialized (
        select rowid from memory_index where tokens @@ query order by rowid + 0 desc limit newest)
      select case when (select count(*) from walked) = newest
        then array_to_json(array(select rowid from walked order by rowid desc))
        else array_to_json(array(select rowid from found order by rowid desc)) end'
  `.execute(db);
}
