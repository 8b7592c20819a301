/**
 * PostgreSQL with the extension pgvector: an index (HNSW) of the vectors of a model, for agents with very many memories.
 * Its table is made when a model is first indexed, because the extension may be installed later than the platform. It
 * follows the codes: what is deleted there is deleted here.
 */
import { sql } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import type { SeenOwners } from './vectors.store.ts';

/** Dimensions that an index of 16-bit floats takes. */
const dimensionsMax = 4_000;
/** The most rows that a search of the index looks at. */
const scannedMax = 20_000;

/** Whether an index of so many dimensions can be made: pgvector has 16-bit floats from 0.7 and filters in turns from 0.8 on. */
export async function canIndex(db: Handle, dimensions: number): Promise<boolean> {
  if (db.dialect !== 'postgres' || dimensions > dimensionsMax) return false;
  const { rows } = await sql<{ version: string }>`
    select extversion as version from pg_extension where extname = 'vector'`.execute(db.kysely);
  const [major = 0, minor = 0] = (rows[0]?.version ?? '').split('.').map(Number);
  return major > 0 || minor >= 8;
}

/**
 * Makes the table, and the index of a model, which lacks vectors until it has a search. Dropping the extension takes the
 * column of the table and its indexes with it, and leaves the rest.
 */
export async function createIndex(tx: Transaction, model: number, dimensions: number) {
  const run = (text: string) => sql.raw(text).execute(tx.kysely);
  await dropSearch(tx, model);
  const { rows } = await sql<{ whole: boolean }>`select exists (
    select 1 from pg_attribute where attrelid = to_regclass('memory_nearest')
      and attname = 'vector' and not attisdropped) as whole`.execute(tx.kysely);
  if (rows[0]?.whole !== true) await run('drop table if exists memory_nearest');
  await run(`create table if not exists memory_nearest (
    seq bigint primary key references memory_codes (seq) on delete cascade,
    owner bigint not null, together bigint, model bigint not null, vector halfvec not null)`);
  await run(`create index if not exists memory_nearest_${model} on memory_nearest
    using hnsw ((vector::halfvec(${dimensions})) halfvec_cosine_ops) where model = ${model}`);
}

/** The index of a model no longer has all vectors. */
export async function dropSearch(tx: Transaction, model: number): Promise<void> {
  await sql
    .raw(`drop function if exists ${nameOf(model)}(text, bigint[], bigint[], integer)`)
    .execute(tx.kysely);
}

/** Makes the search of an index, which says by its being there that the index has all vectors. */
export async function createSearch(tx: Transaction, model: number, dimensions: number) {
  await sql
    .raw(`create or replace function memory_nearest_${model}
      (asked text, own bigint[], everyone bigint[], most integer)
    returns table (seq bigint) language sql stable
    set enable_seqscan to off set enable_bitmapscan to off set enable_sort to off
    set hnsw.ef_search to 400 set hnsw.iterative_scan to 'strict_order'
    set hnsw.max_scan_tuples to ${scannedMax}
    as 'select seq from memory_nearest
      where model = ${model} and (owner = any(own) or together = any(everyone))
      order by vector::halfvec(${dimensions}) <=> asked::halfvec(${dimensions}) limit most'`)
    .execute(tx.kysely);
}

/** Up to `max` vectors of a model that the index lacks, in the order of their recording after a number. */
export async function listUnindexed(
  db: Handle,
  { model, after, max }: { model: number; after: number; max: number },
) {
  const { rows } = await sql<{ n: number; seq: number; vector: Uint8Array }>`
    select c.n, c.seq, v.vector from memory_codes c join memory_vectors v on v.seq = c.seq
    where c.model = ${model} and c.n > ${after}
      and not exists (select 1 from memory_nearest where memory_nearest.seq = c.seq and memory_nearest.model = c.model)
    order by c.n limit ${max}`.execute(db.kysely);
  return rows;
}

/** The number of the vector that was recorded last, of any model; `beginning` where there is none. */
export async function findLastNumber(db: Handle, beginning: number): Promise<number> {
  const { rows } = await sql<{ n: number | null }>`select max(n) as n from memory_codes`.execute(
    db.kysely,
  );
  return Number(rows[0]?.n ?? beginning);
}

/** Adds vectors, which are there still, to the index. */
export async function indexVectors(
  tx: Transaction,
  rows: readonly { readonly seq: number; readonly vector: Float32Array }[],
): Promise<void> {
  if (rows.length === 0) return;
  const seqs = `{${rows.map(({ seq }) => seq).join()}}`;
  const vectors = `{${rows.map(({ vector }) => `"[${vector.join()}]"`).join()}}`;
  await sql`insert into memory_nearest (seq, owner, together, model, vector)
    select c.seq, c.owner, c.together, c.model, given.vector::halfvec
    from unnest(${seqs}::bigint[], ${vectors}::text[]) as given(seq, vector)
    join memory_codes c on c.seq = given.seq
    on conflict (seq) do update set owner = excluded.owner, together = excluded.together,
      model = excluded.model, vector = excluded.vector`.execute(tx.kysely);
}

/** Whether the index of a model is there, in which all its new vectors belong. */
export async function hasIndex(db: Handle, model: number): Promise<boolean> {
  if (db.dialect !== 'postgres') return false;
  const { rows } = await sql<{ there: boolean }>`
    select to_regclass(${nameOf(model)}) is not null as there`.execute(db.kysely);
  return rows[0]?.there === true;
}

/** Whether the index of a model has all its vectors, so that it can be searched. */
export async function isIndexed(db: Handle, model: number): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`
    select to_regproc(${nameOf(model)}) is not null and to_regclass(${nameOf(model)}) is not null
      as there`.execute(db.kysely);
  return rows[0]?.there === true;
}

const nameOf = (model: number) => `memory_nearest_${model}`;

/** What the index of a model finds: some of the nearest, and not always all. */
export async function nearestIndexed(
  db: Handle,
  { own, together }: SeenOwners,
  { model, vector, most }: { model: number; vector: Float32Array; most: number },
): Promise<number[]> {
  const list = (ids: readonly number[]) => `{${ids.join()}}`;
  const { rows } = await sql<{ seq: number }>`select seq from ${sql.raw(nameOf(model))}(
    ${`[${vector.join()}]`}, ${list(own)}::bigint[], ${list(together)}::bigint[], ${most})`.execute(
    db.kysely,
  );
  return rows.map(({ seq }) => Number(seq));
}
