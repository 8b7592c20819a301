/**
 * Rows as the parameters of a statement. PostgreSQL gets many in one statement: each column travels as
 * one list, so that the statement stays the same however many rows there are. SQLite, which has no round
 * trips, runs the statement once for each row.
 */
import { type AliasedRawBuilder, type RawBuilder, sql } from 'kysely';
import type { Dialect } from './database.ts';

/** The values of each column, in the order of the rows. */
export type Lists<Row> = { readonly [Column in keyof Row]: readonly Row[Column][] };

type ColumnType = 'text' | 'integer' | 'bigint';

/** The types of the columns. */
export type Types<Row> = { readonly [Column in keyof Row]: ColumnType };

export function listsOf<Row extends object>(rows: readonly Row[], types: Types<Row>): Lists<Row> {
  const columns = Object.keys(types) as (keyof Row)[];
  const lists = columns.map((column) => [column, rows.map((row) => row[column])]);
  return Object.fromEntries(lists) as Lists<Row>;
}

/** The parameters of each time that a statement over `rowsIn` runs. */
export function rowsParams<Row extends object>(
  dialect: Dialect,
  rows: readonly Row[],
  types: Types<Row>,
): readonly (Row | Lists<Row>)[] {
  return dialect === 'sqlite' ? rows : [listsOf(rows, types)];
}

/** The rows of the parameters, in their order, to select from as `given`. */
export function rowsIn<Row>(
  dialect: Dialect,
  param: (column: keyof Row & string) => RawBuilder<unknown>,
  types: Types<Row>,
): AliasedRawBuilder<Row, 'given'> {
  const columns = Object.keys(types) as (keyof Row & string)[];
  if (dialect === 'sqlite') {
    const values = columns.map((column) => sql`${param(column)} as ${sql.ref(column)}`);
    return sql<Row>`(select ${sql.join(values)})`.as('given');
  }
  const lists = columns.map((column, i) => {
    const list = sql`${param(column)}::${sql.raw(types[column])}[]`;
    // The planner must not see that a list is short: a plan for few rows, made at each call, looks cheaper
    // than the one that is kept, and making it takes longer than the statement does.
    return i === 0 ? sql`(select ${list})` : list;
  });
  const names = columns.map((column) => sql.ref(column));
  return sql<Row>`unnest(${sql.join(lists)})`.as<'given'>(sql`given(${sql.join(names)})`);
}
