/**
 * Vectors of memories, for a search by meaning. `memories.embedding` is the model of a memory's vector, 0 without one, so
 * an index finds those that await one. The codes, a bit for each dimension, are apart from the vectors, because a search
 * reads all codes of an owner and few vectors.
 */
import { type Kysely, sql } from 'kysely';
import type { Dialect } from '../database.ts';

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  const sqlite = dialect === 'sqlite';
  const serial = sqlite ? 'integer' : 'bigserial';
  await db.schema
    .createTable('embedding_models')
    .addColumn('id', serial, (c) => c.primaryKey().notNull())
    .addColumn('model', 'text', (c) => c.notNull())
    .addColumn('dimensions', 'integer')
    .addColumn('activated_at', 'bigint', (c) => c.notNull())
    .addColumn('holder', 'text')
    .addColumn('leased_until', 'bigint', (c) => c.notNull().defaultTo(0))
    .execute();

  await db.schema
    .alterTable('memories')
    .addColumn('embedding', 'bigint', (c) => c.notNull().defaultTo(0))
    .execute();
  await sql`create index memories_embedding on memories (embedding, owner, seq)`.execute(db);

  await db.schema
    .createTable('memory_vectors')
    .addColumn('seq', 'bigint', (c) => c.primaryKey().notNull())
    .addColumn('model', 'bigint', (c) => c.notNull())
    .addColumn('vector', sqlite ? 'blob' : 'bytea', (c) => c.notNull())
    .execute();
  await db.schema
    .createTable('memory_codes')
    .addColumn('n', serial, (c) => c.primaryKey().notNull())
    .addColumn('seq', 'bigint', (c) => c.notNull())
    .addColumn('owner', 'bigint', (c) => c.notNull())
    .addColumn('together', 'bigint')
    .addColumn('model', 'bigint', (c) => c.notNull())
    .addColumn('code', sqlite ? 'blob' : sql`bit varying`, (c) => c.notNull())
    .execute();
  await sql`create unique index memory_codes_seq on memory_codes (seq)`.execute(db);
  await sql`create index memory_codes_owner on memory_codes (owner, model, n)`.execute(db);
  await sql`create index memory_codes_together on memory_codes (together, model, n)
    where together is not null`.execute(db);
  if (!sqlite) await distanceFunction(db);
}

/** How many bits differ. PostgreSQL counts bits from version 14 on. */
async function distanceFunction(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ version: number }>`
    select current_setting('server_version_num')::integer as version`.execute(db);
  const differing =
    Number(rows[0]?.version) >= 140_000
      ? 'bit_count(a # b)'
      : "length(replace((a # b)::text, '0', ''))::bigint";
  await sql`create function memory_distance(a bit varying, b bit varying)
    returns bigint language sql immutable as ${sql.lit(`select ${differing}`)}`.execute(db);
}
