/** The queries of a search: which memories have some terms, and their columns. */
import { type Kysely, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely';
import type { Dialect, Handle } from '../../adapters/database/database.ts';
import { bytesOf } from '../../adapters/database/page-bytes.ts';
import { type Parameter, type Statement, statement } from '../../adapters/database/statement.ts';
import type { Tables } from '../../adapters/database/tables.ts';
import { visibleColumns } from './memories.store.ts';

/** Up to so many newest matches SQLite reads its index backwards, which is slower per match. */
const backwardsMax = 2_000;
/** Memories with all words of a phrase that are checked for the phrase, newest first. */
const phraseLookedAtMax = 3_000;
/** PostgreSQL's greatest `integer`. */
const integerMax = 2_147_483_647;

/** An index expression that matches any of the terms under any of the owners. Empty for no terms. */
export function anyOf(db: Handle, owners: readonly number[], terms: readonly string[]): string {
  if (terms.length === 0) return '';
  const quote = db.dialect === 'sqlite' ? '"' : "'";
  return oneOf(
    db,
    owners.flatMap((owner) => terms.map((term) => `${quote}${owner}${term}${quote}`)),
  );
}

/** An expression that matches any of these. */
export function oneOf({ dialect }: Handle, expressions: readonly string[]): string {
  return `(${expressions.join(dialect === 'sqlite' ? ' OR ' : ' | ')})`;
}

/** An expression that matches all of these. */
export function allOf({ dialect }: Handle, expressions: readonly string[]): string {
  return expressions.join(dialect === 'sqlite' ? ' AND ' : ' & ');
}

/** How many memories each expression matches, counted up to `most`. */
export async function countEach(
  db: Handle,
  asked: readonly string[],
  most: number,
): Promise<number[]> {
  if (db.dialect === 'postgres') {
    const params = { queries: JSON.stringify(asked), most };
    return (await db.first(postgresCounts, params))?.counts ?? [];
  }
  const counts: number[] = [];
  for (const terms of asked) {
    counts.push((await db.first(sqliteCount, { terms, most }))?.count ?? 0);
  }
  return counts;
}

const sqliteCount = sqlStatement<{ terms: string; most: number }>()<{ count: number }>(
  (p) => sql`select count(*) as count from (
    select 1 from memory_index where memory_index match ${p('terms')} limit ${p('most')})`,
);
const postgresCounts = sqlStatement<{ queries: string; most: number }>()<{ counts: number[] }>(
  (p) => sql`select memory_counts(
    array(select value::tsquery from json_array_elements_text(${p('queries')}::json)),
    ${p('most')}) as counts`,
);

/** The `seq` of all memories that each expression matches. */
export async function listsOf(db: Handle, asked: readonly string[]): Promise<number[][]> {
  if (db.dialect === 'postgres') {
    return (await db.first(postgresLists, { queries: JSON.stringify(asked) }))?.lists ?? [];
  }
  const lists: number[][] = [];
  for (const terms of asked) {
    const row = await db.first(sqliteList, { terms });
    lists.push(JSON.parse(row?.seqs ?? '[]') as number[]);
  }
  return lists;
}

const sqliteList = sqlStatement<{ terms: string }>()<{ seqs: string }>(
  (p) => sql`select json_group_array(rowid) as seqs from (
    select rowid from memory_index where memory_index match ${p('terms')} order by rowid)`,
);
const postgresLists = sqlStatement<{ queries: string }>()<{ lists: number[][] | null }>(
  (p) => sql`select memory_lists(
    array(select value::tsquery from json_array_elements_text(${p('queries')}::json))) as lists`,
);

/** How many memories an expression matches. */
export async function countMatches(db: Handle, terms: string): Promise<number> {
  const statement = db.dialect === 'postgres' ? postgresTotal : sqliteTotal;
  return (await db.first(statement, { terms }))?.total ?? 0;
}

const sqliteTotal = sqlStatement<{ terms: string }>()<{ total: number }>(
  (p) => sql`select count(*) as total from memory_index where memory_index match ${p('terms')}`,
);
const postgresTotal = sqlStatement<{ terms: string }>()<{ total: number }>(
  (p) => sql`select memory_count(${p('terms')}::tsquery) as total`,
);

/** How many of the given memories, by `seq`, an expression matches. */
export async function countAmong(
  db: Handle,
  terms: string,
  seqs: ReadonlySet<number>,
): Promise<number> {
  if (seqs.size === 0) return 0;
  const among = db.dialect === 'postgres' ? postgresAmong : sqliteAmong;
  const params = { terms, seqs: numbersParam(db, [...seqs]) };
  return Number((await db.first(among, params))?.count ?? 0);
}

const sqliteAmong = sqlStatement<{ terms: string; seqs: string }>()<{ count: number }>(
  (p) => sql`select count(*) as count from memory_index where memory_index match ${p('terms')}
    and +rowid in (select value from json_each(${p('seqs')}))`,
);
const postgresAmong = sqlStatement<{ terms: string; seqs: string }>()<{ count: number }>(
  (p) => sql`select count(*) as count from memory_index
    where rowid = any(${p('seqs')}::bigint[]) and tokens @@ ${p('terms')}::tsquery`,
);

/** A search of the index. Each term of the expression contains an owner. */
export interface IndexQuery {
  readonly terms: string;
  readonly owners: readonly number[];
}

/**
 * The `seq` of the newest `limit` matches, newest first. For a page far back the caller reads from the start: finding
 * the matches is the cost, not returning them.
 */
export async function newestMatches(
  db: Handle,
  { terms, owners }: IndexQuery,
  limit: number,
): Promise<readonly number[]> {
  const params = { terms, limit: Math.min(limit, integerMax) };
  if (db.dialect === 'postgres') {
    const asked = { ...params, owners: numbersParam(db, owners) };
    return (await db.first(postgresNewest, asked))?.seqs ?? [];
  }
  if (limit <= backwardsMax) {
    const found = await db.first(sqliteNewest, params);
    return JSON.parse(found?.seqs ?? '[]') as number[];
  }
  const found = await db.first(sqliteList, { terms });
  const seqs = JSON.parse(found?.seqs ?? '[]') as number[];
  return seqs.slice(-limit).reverse();
}

const postgresNewest = sqlStatement<{ owners: string; terms: string; limit: number }>()<{
  seqs: number[];
}>(
  (p) => sql`select memory_newest_of(
    ${p('owners')}::bigint[], ${p('terms')}::tsquery, ${p('limit')}) as seqs`,
);
// One row with all matches: a row for each match takes six times as long.
const sqliteNewest = sqlStatement<{ terms: string; limit: number }>()<{ seqs: string }>(
  (p) => sql`select json_group_array(rowid) as seqs from (
    select rowid from memory_index where memory_index match ${p('terms')}
    order by rowid desc limit ${p('limit')})`,
);

/** Those of the newest matches whose words contain all phrases; newest first. */
export async function phraseMatches(
  db: Handle,
  { terms, owners }: IndexQuery,
  phrases: readonly { readonly text: string; readonly isUnspaced: boolean }[],
): Promise<readonly number[]> {
  const wanted = (isUnspaced: boolean) =>
    JSON.stringify(phrases.filter((one) => one.isUnspaced === isUnspaced).map(({ text }) => text));
  const params = {
    terms,
    spaced: wanted(false),
    unspaced: wanted(true),
    most: phraseLookedAtMax,
  };
  if (db.dialect === 'postgres') {
    const asked = { ...params, owners: numbersParam(db, owners) };
    return (await db.first(postgresPhrase, asked))?.seqs ?? [];
  }
  const found = await db.first(sqlitePhrase, params);
  return JSON.parse(found?.seqs ?? '[]') as number[];
}

interface PhraseParams {
  terms: string;
  spaced: string;
  unspaced: string;
  most: number;
}
const sqlitePhrase = sqlStatement<PhraseParams>()<{ seqs: string }>(
  (p) => sql`select json_group_array(seq) as seqs from (
    select seq from memories where seq in (
      select rowid from memory_index where memory_index match ${p('terms')}
      order by rowid desc limit ${p('most')})
    and not exists (select 1 from json_each(${p('spaced')}) where instr(words, value) = 0)
    and not exists (select 1 from json_each(${p('unspaced')})
      where instr(replace(words, ' ', ''), value) = 0)
    order by seq desc)`,
);
const postgresPhrase = sqlStatement<PhraseParams & { owners: string }>()<{ seqs: number[] }>(
  (p) => sql`select array_to_json(array(
    select seq from memories
    where seq = any (array(select value::bigint
      from json_array_elements_text(memory_newest_of(
        ${p('owners')}::bigint[], ${p('terms')}::tsquery, ${p('most')}))))
    and not exists (select 1 from json_array_elements_text(${p('spaced')}::json)
      where strpos(words, value) = 0)
    and not exists (select 1 from json_array_elements_text(${p('unspaced')}::json)
      where strpos(replace(words, ' ', ''), value) = 0)
    order by seq desc)) as seqs`,
);

/** A prepared statement in plain SQL, for syntax that the query builder lacks. */
function sqlStatement<P>() {
  return <R>(text: (p: Parameter<P>) => RawBuilder<unknown>): Statement<P, R> =>
    statement<P>()((db: Kysely<Tables>, p) => ({
      compile: () => (text(p) as RawBuilder<R>).compile(db),
    }));
}

interface AmongParams {
  owners: string;
  seqs: string;
}

/** Makes a function that reads columns of memories by `seq`, unordered; deleted ones are missing. */
function readerOf<R>(
  select: (
    memories: SelectQueryBuilder<Tables, 'memories', Record<never, unknown>>,
  ) => SelectQueryBuilder<Tables, 'memories', R>,
) {
  const read = statement<AmongParams>()((db, p, dialect) =>
    select(db.selectFrom('memories')).where(among(dialect, p)),
  );
  return (db: Handle, owners: readonly number[], seqs: readonly number[]) =>
    db.all(read, { owners: numbersParam(db, owners), seqs: numbersParam(db, seqs) });
}

/** Ids and word counts. */
export const sizesOf = readerOf((memories) => memories.select(['seq', 'id', 'word_count']));
/** The bytes of each memory in a response. */
export const bytesOfMemories = readerOf((memories) =>
  memories.select(['seq', bytesOf('content', 'metadata').as('bytes')]),
);
/** The columns for ranking. */
export const wordsOfMemories = readerOf((memories) =>
  memories.select(['seq', 'id', 'word_count', 'words', 'terms']),
);
/** The columns that the API shows. */
export const memoriesBySeq = readerOf((memories) => memories.select(['seq', ...visibleColumns]));

/** Any number of numbers as one parameter, so that the statement can stay prepared. */
function numbersParam({ dialect }: Handle, numbers: readonly number[]): string {
  return dialect === 'sqlite' ? JSON.stringify(numbers) : `{${numbers.join()}}`;
}

/** The unary plus keeps SQLite's planner from scanning all memories of the owners. */
function among(dialect: Dialect, p: <K extends keyof AmongParams>(name: K) => RawBuilder<unknown>) {
  const isIn = (column: RawBuilder<unknown>, numbers: RawBuilder<unknown>) =>
    dialect === 'sqlite'
      ? sql`${column} in (select value from json_each(${numbers}))`
      : sql`${column} = any(${numbers}::bigint[])`;
  return sql<boolean>`${isIn(sql`seq`, p('seqs'))}
    and (${isIn(sql`+owner`, p('owners'))} or ${isIn(sql`+together`, p('owners'))})`;
}
