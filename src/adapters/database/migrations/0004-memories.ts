/** Memories of agents, and the index of their words. */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';
import { clusteredIn } from './clustered.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const sqlite = dialect === 'sqlite';
  const serial = sqlite ? 'integer' : 'bigserial';
  const clustered = clusteredIn(dialect);

  await db.schema
    .createTable('memory_owners')
    .addColumn('id', serial, (c) => c.primaryKey().notNull())
    .addColumn('organization_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('count', 'bigint', (c) => c.notNull().defaultTo(0))
    .addColumn('removed', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  // A removed agent's id may be taken again while the old one's memories are still being deleted.
  await sql`create unique index memory_owners_agent on memory_owners (organization_id, agent_id)
    where removed = 0`.execute(db);
  await sql`create index memory_owners_removed on memory_owners (id) where removed = 1`.execute(db);

  await clustered(
    db.schema
      .createTable('memory_tags')
      .addColumn('owner', 'bigint', (c) => c.notNull())
      .addColumn('tag', 'text', (c) => c.notNull())
      .addColumn('count', 'bigint', (c) => c.notNull())
      .addPrimaryKeyConstraint('memory_tags_pk', ['owner', 'tag']),
  ).execute();

  // In SQLite its rows need numbers, by which the index names them.
  await db.schema
    .createTable('memories')
    .addColumn('seq', serial, (c) => c.primaryKey().notNull())
    .addColumn('owner', 'bigint', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('tag', 'text', (c) => c.notNull())
    .addColumn('word_count', 'integer', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('updated_at', 'bigint', (c) => c.notNull())
    .addColumn('metadata', 'text', (c) => c.notNull())
    .addColumn('words', 'text', (c) => c.notNull())
    .addColumn('content', 'text', (c) => c.notNull())
    .execute();
  await sql`create unique index memories_newest on memories (owner, id)`.execute(db);
  await sql`create index memories_of_tag on memories (owner, tag, id)`.execute(db);

  await (sqlite ? sqliteIndex(db) : postgresIndex(db));
}

/**
 * Which memories have a word, and nothing else: no text (`content=''`), no positions
 * (`detail=none`). The words arrive split by spaces, which is where `ascii` splits them. What leaves
 * the index is named by its words: with `contentless_delete` the connection would report a last row
 * id beyond 2^53, at which node:sqlite fails every later write.
 */
async function sqliteIndex(db: Kysely<unknown>): Promise<void> {
  await sql`create virtual table memory_index using fts5(
    tokens, tokenize = 'ascii', content = '', detail = none
  )`.execute(db);
}

async function postgresIndex(db: Kysely<unknown>): Promise<void> {
  await sql`create table memory_index (rowid bigint primary key, tokens tsvector not null)`.execute(
    db,
  );
  // Without the list of pending entries, which every search would have to walk through.
  await sql`create index memory_index_tokens on memory_index using gin (tokens)
    with (fastupdate = off)`.execute(db);
  // The planner may prefer to read the whole table, since it does not know what the vectors of long
  // memories cost; a function can forbid it that without a transaction. It gives one row, because
  // rows that leave a function one by one cost more than all the rest.
  await sql`create function memory_search(query tsquery, newest integer)
    returns table (total bigint, seqs bigint[]) language sql stable set enable_seqscan to off
    as 'with found as materialized (select rowid from memory_index where tokens @@ query)
      select (select count(*) from found),
        array(select rowid from found order by rowid desc limit newest)'
  `.execute(db);
}
