/**
 * Tables of counters. Many rows are added in one statement, each to the row of its key. Rows are locked in the
 * order of their keys, so that transactions do not deadlock.
 */
import { type Selectable, sql } from 'kysely';
import type { Transaction } from './database.ts';
import { greatestOf } from './extremes.ts';
import { statement } from './statement.ts';
import type { Tables } from './tables.ts';

type CounterTable = 'token_usage' | 'run_statistics' | 'skill_key_runs';

interface Columns<Column extends string, Key extends Column> {
  readonly key: readonly Key[];
  readonly sums: readonly Column[];
  /** The columns that keep the greatest value. */
  readonly maxima?: readonly Column[];
}

/** A table of counters. */
export class Counters<Table extends CounterTable, Key extends keyof Tables[Table] & string> {
  readonly #add: ReturnType<typeof addStatement>;
  readonly #remove: ReturnType<typeof removeStatement>;

  constructor(table: Table, columns: Columns<keyof Tables[Table] & string, Key>) {
    this.#add = addStatement(table, columns);
    this.#remove = removeStatement(table, columns.key);
  }

  /** Two rows that are added together must not have the same key. */
  async add(tx: Transaction, rows: readonly Readonly<Selectable<Tables[Table]>>[]): Promise<void> {
    if (rows.length > 0) await tx.all(this.#add, { rows: JSON.stringify(rows) });
  }

  remove(
    tx: Transaction,
    rows: readonly Readonly<
      Pick<Selectable<Tables[Table]>, Key & keyof Selectable<Tables[Table]>>
    >[],
  ): Promise<void> {
    return tx.each(this.#remove, rows as readonly object[] as readonly KeyValues[]);
  }
}

type KeyValues = Record<string, string | number>;

function addStatement(table: CounterTable, { key, sums, maxima = [] }: Columns<string, string>) {
  const columns = [...key, ...sums, ...maxima];
  const own = (column: string) => sql.ref(`${table}.${column}`);
  const added = (column: string) => sql.ref(`excluded.${column}`);
  return statement<{ rows: string }>()((db, p, dialect) => {
    const rows =
      dialect === 'sqlite'
        ? sql`select ${sql.join(columns.map((name) => sql`value->>${sql.lit(name)}`))} from json_each(${p('rows')})`
        : sql`select ${sql.join(columns.map((name) => sql.ref(name)))} from json_populate_recordset(null::${sql.table(table)}, ${p('rows')}::json)`;
    const greater = greatestOf(dialect);
    const changes = [
      ...sums.map((name) => [name, sql`${own(name)} + ${added(name)}`]),
      ...maxima.map((name) => [name, sql`${greater}(${own(name)}, ${added(name)})`]),
    ];
    const order = key.map((_, i) => sql.lit(i + 1));
    return db
      .insertInto(table as 'token_usage')
      .columns(columns as never[])
      .expression(sql<never>`${rows} where true order by ${sql.join(order)}`)
      .onConflict((conflict) =>
        conflict.columns([...key] as never[]).doUpdateSet(Object.fromEntries(changes)),
      );
  });
}

function removeStatement(table: CounterTable, key: readonly string[]) {
  return statement<KeyValues>()((db, p) =>
    key.reduce(
      (query, column) => query.where(sql.ref(column), '=', p(column)),
      db.deleteFrom(table as 'token_usage'),
    ),
  );
}
