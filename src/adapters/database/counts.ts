/**
 * Counts kept beside the rows, in the same transaction, so that no list ever counts rows. Each
 * process adds to rows of its own (`writer`), so that processes never wait for one another here;
 * a count is the sum over the writers.
 */
import { type SqlBool, sql } from 'kysely';
import type { Transaction } from './database.ts';
import { type Lists, rowsIn, rowsParams, type Types } from './rows-in.ts';
import { statement } from './statement.ts';
import type { Tables } from './tables.ts';

type CountsTable = 'job_counts' | 'conversation_counts' | 'webhook_delivery_counts';
/** What a row is counted by, without its status. */
type Kind<T extends CountsTable> = Omit<Tables[T], 'status' | 'writer' | 'count'>;

/** One row of `kind` less in status `from`, one more in `to`; null for a row that comes or goes. */
export interface CountChange<T extends CountsTable> {
  readonly kind: Kind<T>;
  readonly from: Tables[T]['status'] | null;
  readonly to: Tables[T]['status'] | null;
}

/** Names this process's rows. One of its kind in a cluster; the embedded process is always the same. */
export type Writer = string;

/** A row of any of the tables. */
type Row = Record<string, string | number>;
type Counted = Row & { readonly status: string; readonly count: number };

export interface Counts<T extends CountsTable> {
  /** Records changes. The caller passes every change of a row's status. */
  change(tx: Transaction, writer: Writer, changes: readonly CountChange<T>[]): Promise<void>;
  /**
   * Adds what other processes have counted to this one's rows. Their sums stay the same, and rows of
   * processes that are gone do not pile up; one that lives on begins anew from zero. Leaves alone
   * rows that another transaction has locked, and does nothing while another process folds.
   */
  fold(tx: Transaction, writer: Writer): Promise<void>;
}

/** A table of counts and its prepared statements. */
interface Counting {
  readonly columns: readonly string[];
  readonly names: readonly string[];
  readonly types: Types<Row>;
  readonly add: ReturnType<typeof addStatement>;
  readonly takeOthers: ReturnType<typeof takeOthersStatement>;
}

/** The counts in `table`, which are kept by `columns`. */
export function createCounts<T extends CountsTable>(
  table: T,
  columns: readonly (keyof Kind<T> & string)[],
): Counts<T> {
  const names = [...columns, 'status', 'writer', 'count'];
  const types: Types<Row> = Object.fromEntries(
    names.map((name) => [name, name === 'count' ? 'bigint' : 'text']),
  );
  const counting: Counting = {
    columns,
    names,
    types,
    add: addStatement(table, columns, types),
    takeOthers: takeOthersStatement(table),
  };
  return {
    change: (tx, writer, changes) => change(counting, tx, writer, changes),
    fold: (tx, writer) => fold(counting, tx, writer),
  };
}

async function change<T extends CountsTable>(
  counting: Counting,
  tx: Transaction,
  writer: Writer,
  changes: readonly CountChange<T>[],
): Promise<void> {
  const sums: Sums = new Map();
  let last: KindSums | undefined;
  for (const { kind, from, to } of changes) {
    // Most changes of a batch are of one kind, and a comparison costs less than the text of a key.
    if (
      last === undefined ||
      counting.columns.some((name) => last?.kind[name] !== (kind as Row)[name])
    ) {
      last = sumsOf(sums, counting.columns, kind as Row);
    }
    if (from !== null) addTo(last, from, -1);
    if (to !== null) addTo(last, to, 1);
  }
  await write(counting, tx, writer, sums);
}

async function fold(counting: Counting, tx: Transaction, writer: Writer): Promise<void> {
  const sums: Sums = new Map();
  for (const row of (await tx.all(counting.takeOthers, { writer })) as Counted[]) {
    addTo(sumsOf(sums, counting.columns, row), row.status, row.count);
  }
  await write(counting, tx, writer, sums);
}

/** The amounts to add to the rows of one kind, by status. */
interface KindSums {
  readonly kind: Row;
  readonly byStatus: Map<string, number>;
}

/** By the values of the kind. */
type Sums = Map<string, KindSums>;

function sumsOf(sums: Sums, columns: readonly string[], kind: Row): KindSums {
  const key = keyOf(columns, kind);
  const known = sums.get(key);
  if (known !== undefined) return known;
  const made = { kind, byStatus: new Map<string, number>() };
  sums.set(key, made);
  return made;
}

function keyOf(names: readonly string[], row: Row): string {
  let key = '';
  for (const name of names) key += `${row[name]}\n`;
  return key;
}

function addTo({ byStatus }: KindSums, status: string, by: number): void {
  byStatus.set(status, (byStatus.get(status) ?? 0) + by);
}

function write(counting: Counting, tx: Transaction, writer: Writer, sums: Sums) {
  const { columns, names, types, add } = counting;
  const rows: Row[] = [];
  for (const { kind, byStatus } of sums.values()) {
    for (const [status, count] of byStatus) {
      if (count === 0) continue;
      const row: Row = {};
      for (const column of columns) row[column] = kind[column] as string;
      rows.push(Object.assign(row, { status, writer, count }));
    }
  }
  if (rows.length === 0) return;
  // SQLite has one writer at a time, and its rows need no order.
  const ordered = tx.dialect === 'sqlite' ? rows : inOrder(names, rows);
  return tx.each(add, rowsParams(tx.dialect, ordered, types));
}

/** In one order, so that two transactions of a process never wait for each other. */
function inOrder(names: readonly string[], rows: readonly Row[]): Row[] {
  const keyed = rows.map((row) => ({ key: keyOf(names, row), row }));
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ row }) => row);
}

/** Inserts counts, or adds to those that exist. */
function addStatement(table: CountsTable, columns: readonly string[], types: Types<Row>) {
  return statement<Row | Lists<Row>>()((db, p, dialect) =>
    db
      .insertInto(table as never)
      .columns(Object.keys(types) as never)
      .expression(
        db
          .selectFrom(rowsIn<Row>(dialect, p, types))
          .selectAll()
          .where(sql.lit(true)) as never,
      )
      .onConflict((conflict) =>
        conflict.columns([...columns, 'status', 'writer'] as never).doUpdateSet(
          (eb) =>
            ({
              count: eb(`${table}.count` as never, '+', eb.ref('excluded.count' as never)),
            }) as never,
        ),
      ),
  );
}

function takeOthersStatement(table: CountsTable) {
  return statement<{ writer: string }>()((db, p, dialect) => {
    const others = sql<SqlBool>`writer <> ${p('writer')}`;
    const free = sql<SqlBool>`ctid in (select ctid from ${sql.table(table)} where ${others}
      and (select pg_try_advisory_xact_lock(hashtext(${sql.lit(table)}))) for update skip locked)`;
    return db
      .deleteFrom(table as never)
      .where(dialect === 'sqlite' ? others : free)
      .returningAll();
  });
}
