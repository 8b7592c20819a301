/**
 * Queries on the pgvector index (HNSW) of a model's vectors, for agents with very many memories. The table is created
 * when a model is first indexed, because the extension may be installed later than the platform. Deleting a code
 * deletes its row here.
 */
import { sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { SeenOwners } from './vectors.store.ts';

/** Dimensions that an index of 16-bit floats takes. */
const dimensionsMax = 4_000;
/** Rows that a search of the index scans at most. */
const scannedMax = 20_000;

/** Whether the index is possible: it needs 16-bit floats (pgvector 0.7), iterative scans (0.8), and few enough dimensions. */
export async function canIndex(db: Handle, dimensions: number): Promise<boolean> {
  if (db.dialect !== 'postgres' || dimensions > dimensionsMax) return false;
  const { rows } = await sql<{ version: string }>`
    select extversion as version from pg_extension where extname = 'vector'`.execute(db.kysely);
  const [major = 0, minor = 0] = (rows[0]?.version ?? '').split('.').map(Number);
  return major > 0 || minor >= 8;
}

/**
 * Creates the table and the index of a model. The index is incomplete until `createSearch`. A table without its vector
 * column is left from a dropped extension and is replaced.
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

/** Drops the search function, which marks the index of a model as incomplete. */
export async function dropSearch(tx: Transaction, model: number): Promise<void> {
  await sql
    .raw(`drop function if exists ${nameOf(model)}(text, bigint[], bigint[], integer)`)
    .execute(tx.kysely);
}

/** Creates the search function of an index. Its existence marks the index as complete. */
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

/** Up to `max` vectors of a model that are not indexed, after the number `after`, oldest first. */
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

/** The number of the newest vector of any model; `beginning` if there is none. */
export async function findLastNumber(db: Handle, beginning: number): Promise<number> {
  const { rows } = await sql<{ n: number | null }>`select max(n) as n from memory_codes`.execute(
    db.kysely,
  );
  return Number(rows[0]?.n ?? beginning);
}

/** Adds vectors to the index, unless they were deleted meanwhile. */
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

/** Whether the index of a model exists, complete or not; new vectors are added to it. */
export async function hasIndex(db: Handle, model: number): Promise<boolean> {
  if (db.dialect !== 'postgres') return false;
  const { rows } = await sql<{ there: boolean }>`
    select to_regclass(${nameOf(model)}) is not null as there`.execute(db.kysely);
  return rows[0]?.there === true;
}

/** Whether the index of a model is complete, so that it can be searched. */
export async function isIndexed(db: Handle, model: number): Promise<boolean> {
  const { rows } = await sql<{ there: boolean }>`
    select to_regproc(${nameOf(model)}) is not null and to_regclass(${nameOf(model)}) is not null
      as there`.execute(db.kysely);
  return rows[0]?.there === true;
}

const nameOf = (model: number) => `memory_nearest_${model}`;

/** Searches the index of a model. The search is approximate: it may miss some of the nearest. */
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
