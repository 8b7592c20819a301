/**
 * The terms of a memory's entry in the index: its words, their stems and parts. Null for an entry
 * that an earlier version made of the words alone, until a background task has made it anew.
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await db.schema.alterTable('memories').addColumn('terms', 'text').execute();
  await sql`create index memories_without_terms on memories (seq) where terms is null`.execute(db);
  if (dialect === 'sqlite') return;
  // Functions for the reason of `memory_search`: the planner must not read the whole table.
  await sql`create function memory_counts(queries tsquery[], most integer)
    returns json language sql stable set enable_seqscan to off
    as 'select array_to_json(array(
      select (select count(*) from (select 1 from memory_index where tokens @@ query limit most) as found)
      from unnest(queries) with ordinality as asked(query, n) order by n))'
  `.execute(db);
  await sql`create function memory_lists(queries tsquery[])
    returns json language sql stable set enable_seqscan to off
    as 'select json_agg(array_to_json(array(select rowid from memory_index where tokens @@ query)) order by n)
      from unnest(queries) with ordinality as asked(query, n)'
  `.execute(db);
}
