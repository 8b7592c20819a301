import type { SchemaPart } from './dialects.ts';

/** How many of the last memories of an owner are read first; none for more than 500 results. */
const latestMax = 'case when newest <= 500 then 8 * newest else 0 end';

/**
 * Which memories have a word. SQLite keeps no text (`content=''`) and no positions (`detail=none`): the words arrive split by
 * spaces, where `ascii` splits them. A removal from the index names the words: with `contentless_delete` the connection
 * would report a last row id beyond 2^53, at which node:sqlite fails every later write.
 *
 * PostgreSQL searches with functions. Its planner may prefer to read the whole table, since it does not know the cost of the
 * vectors of long memories; a function can forbid that without a transaction. Each gives one row, because rows that leave a
 * function one by one cost more than all the rest.
 */
export const memoryIndex: SchemaPart = (t) => [
  t.only.sqlite(`create virtual table memory_index using fts5(
    tokens, tokenize = 'ascii', content = '', detail = none
  )`),
  ...[
    `create table memory_index (rowid bigint primary key, tokens tsvector not null)`,
    // Without the list of pending entries, which every search would have to walk through.
    `create index memory_index_tokens on memory_index using gin (tokens) with (fastupdate = off)`,
    `create function memory_counts(queries tsquery[], most integer)
    returns json language sql stable set enable_seqscan to off
    as 'select array_to_json(array(
      select (select count(*) from (select 1 from memory_index where tokens @@ query limit most) as found)
      from unnest(queries) with ordinality as asked(query, n) order by n))'`,
    `create function memory_lists(queries tsquery[])
    returns json language sql stable set enable_seqscan to off
    as 'select json_agg(array_to_json(array(select rowid from memory_index where tokens @@ query)) order by n)
      from unnest(queries) with ordinality as asked(query, n)'`,
    `create function memory_count(query tsquery)
    returns bigint language sql stable set enable_seqscan to off
    as 'select count(*) from memory_index where tokens @@ query'`,
    // Frequent words are mostly found among the last memories of the owners, so these are read first. PostgreSQL
    // evaluates `found` only where they are not enough; `+ 0` keeps it from reading all rows by their numbers.
    `create function memory_newest_of(owners bigint[], query tsquery, newest integer)
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
        else array_to_json(array(select rowid from found order by rowid desc)) end'`,
  ].map(t.only.postgres),
];
