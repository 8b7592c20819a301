/**
 * `id IN (any number of ids)` with one parameter, so that the statement is prepared once: a JSON array, which
 * both databases can unfold. Statements take it with `p.list`.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Dialect } from './database.ts';

/** The parameter in a query that Kysely runs directly. */
export function listValue(texts: readonly string[]): RawBuilder<string> {
  return sql<string>`${JSON.stringify(texts)}`;
}

/**
 * Whether a value is one of the texts of such a parameter. PostgreSQL looks values of an array up in an
 * index one by one, regardless of the planner's estimates; those of a subquery are joined, which may be
 * a scan.
 */
export function isIn(
  dialect: Dialect,
  value: RawBuilder<unknown>,
  texts: RawBuilder<string>,
): RawBuilder<SqlBool> {
  return dialect === 'sqlite'
    ? sql<SqlBool>`${value} in (select value from json_each(${texts}))`
    : sql<SqlBool>`${value} = any (array(select json_array_elements_text(${texts}::json)))`;
}

/** The condition on a table's `id`. */
export function idIn(dialect: Dialect, ids: RawBuilder<string>): RawBuilder<SqlBool> {
  return isIn(dialect, sql`id`, ids);
}

/**
 * Like `idIn`, for an UPDATE of many rows of `table`. PostgreSQL then locks those that `condition`
 * allows in the order of their ids, so that two transactions never wait for each other; with
 * `skip` it leaves out the rows that another transaction has locked.
 */
export function idInLocked(
  dialect: Dialect,
  ids: RawBuilder<string>,
  table: string,
  condition: RawBuilder<SqlBool>,
  skip = false,
): RawBuilder<SqlBool> {
  const found = sql<SqlBool>`${idIn(dialect, ids)} and ${condition}`;
  if (dialect === 'sqlite') return found;
  const wait = sql.raw(skip ? 'skip locked' : '');
  return sql<SqlBool>`id = any (array(select id from ${sql.table(table)} where ${found} order by id for update ${wait}))`;
}
