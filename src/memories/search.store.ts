/** The queries of a search: which memories have all of some terms, and what they are. */
import { type Kysely, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely';
import type { Dialect, Handle } from '../database/database.ts';
import { bytesOf } from '../database/page-bytes.ts';
import { type Statement, statement } from '../database/statement.ts';
import type { Tables } from '../database/tables.ts';

/**
 * Those that have all terms: how many, and by `seq` the newest `limit` of them, the last recorded
 * first. A page far back is cut from what this gives, since what costs is to look for them.
 */
export async function newestMatches(
  db: Handle,
  terms: readonly string[],
  limit: number,
): Promise<{ total: number; seqs: readonly number[] }> {
  if (db.dialect === 'postgres') {
    const wanted = terms.map((term) => `'${term}'`).join(' & ');
    const params = { terms: wanted, limit: Math.min(limit, integerMax) };
    return (await db.first(postgresMatches, params)) ?? { total: 0, seqs: [] };
  }
  const wanted = terms.map((term) => `"${term}"`).join(' AND ');
  const found = await db.first(sqliteMatches, { terms: wanted });
  const seqs = JSON.parse(found?.seqs ?? '[]') as number[];
  return { total: seqs.length, seqs: seqs.slice(-limit).reverse() };
}

/** PostgreSQL's greatest `integer`. */
const integerMax = 2_147_483_647;

const postgresMatches = written<{ terms: string; limit: number }>()<{
  total: number;
  seqs: number[];
}>(
  (p) => sql`select total, array_to_json(seqs) as seqs
    from memory_search(${p('terms')}::tsquery, ${p('limit')})`,
);
// All of them, which also counts them, and in one row: a row for each takes six times as long.
// Backwards the index is slower, which the caller makes up for.
const sqliteMatches = written<{ terms: string }>()<{ seqs: string }>(
  (p) => sql`select json_group_array(rowid) as seqs from (
    select rowid from memory_index where memory_index match ${p('terms')} order by rowid)`,
);

/** A statement that no query builder knows how to write. */
function written<P>() {
  type Param = Parameters<Statement<P, unknown>['build']>[1];
  return <R>(text: (p: Param) => RawBuilder<unknown>): Statement<P, R> =>
    statement<P>()((db: Kysely<Tables>, p) => ({
      compile: () => (text(p) as RawBuilder<R>).compile(db),
    }));
}

interface AmongParams {
  owner: number;
  seqs: string;
}

/** A function that reads something of the memories with these numbers, in no order; some may be gone. */
function readerOf<R>(
  select: (
    memories: SelectQueryBuilder<Tables, 'memories', Record<never, unknown>>,
  ) => SelectQueryBuilder<Tables, 'memories', R>,
) {
  const read = statement<AmongParams>()((db, p, dialect) =>
    select(db.selectFrom('memories')).where(among(dialect, p)),
  );
  return (db: Handle, owner: number, seqs: readonly number[]) =>
    db.all(read, { owner, seqs: seqsParam(db, seqs) });
}

/** Which they are, and how many words each has. */
export const sizesOf = readerOf((memories) => memories.select(['seq', 'id', 'word_count']));
/** How many bytes each takes up where it is shown. */
export const bytesOfMemories = readerOf((memories) =>
  memories.select(['seq', bytesOf('content', 'metadata').as('bytes')]),
);
/** What ranks them. */
export const wordsOfMemories = readerOf((memories) =>
  memories.select(['seq', 'id', 'word_count', 'words']),
);
/** The memories as they are shown. */
export const memoriesBySeq = readerOf((memories) =>
  memories.select(['seq', 'id', 'tag', 'content', 'metadata', 'created_at', 'updated_at']),
);

/** Any number of them as one parameter, so that the statement stays the same. */
function seqsParam({ dialect }: Handle, seqs: readonly number[]): string {
  return dialect === 'sqlite' ? JSON.stringify(seqs) : `{${seqs.join()}}`;
}

/** The plus keeps the planner from walking through all that the owner has. */
function among(dialect: Dialect, p: <K extends keyof AmongParams>(name: K) => RawBuilder<unknown>) {
  const isNumbered =
    dialect === 'sqlite'
      ? sql`seq in (select value from json_each(${p('seqs')}))`
      : sql`seq = any(${p('seqs')}::bigint[])`;
  return sql<boolean>`${isNumbered} and +owner = ${p('owner')}`;
}
