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

/** The counts in `table`, which are kept by `columns`. */
export class Counts<T extends CountsTable> {
  readonly #columns: readonly string[];
  readonly #names: readonly string[];
  readonly #types: Types<Row>;
  readonly #add: ReturnType<typeof addStatement>;
  readonly #takeOthers: ReturnType<typeof takeOthersStatement>;

  constructor(table: T, columns: readonly (keyof Kind<T> & string)[]) {
    this.#columns = columns;
    this.#names = [...columns, 'status', 'writer', 'count'];
    this.#types = Object.fromEntries(
      this.#names.map((name) => [name, name === 'count' ? 'bigint' : 'text']),
    );
    this.#add = addStatement(table, columns, this.#types);
    this.#takeOthers = takeOthersStatement(table);
  }

  /** Records changes. The caller passes every change of a row's status. */
  async change(tx: Transaction, writer: Writer, changes: readonly CountChange<T>[]): Promise<void> {
    const columns = this.#columns;
    const sums: Sums = new Map();
    let last: KindSums | undefined;
    for (const { kind, from, to } of changes) {
      // Most changes of a batch are of one kind, and a comparison costs less than the text of a key.
      if (last === undefined || columns.some((name) => last?.kind[name] !== (kind as Row)[name])) {
        last = sumsOf(sums, columns, kind as Row);
      }
      if (from !== null) addTo(last, from, -1);
      if (to !== null) addTo(last, to, 1);
    }
    await this.#write(tx, writer, sums);
  }

  /**
   * Adds what other processes have counted to this one's rows. Their sums stay the same, and rows of
   * processes that are gone do not pile up; one that lives on begins anew from zero. Leaves alone
   * rows that another transaction has locked, and does nothing while another process folds.
   */
  async fold(tx: Transaction, writer: Writer): Promise<void> {
    const sums: Sums = new Map();
    for (const row of (await tx.all(this.#takeOthers, { writer })) as Counted[]) {
      addTo(sumsOf(sums, this.#columns, row), row.status, row.count);
    }
    await this.#write(tx, writer, sums);
  }

  async #write(tx: Transaction, writer: Writer, sums: Sums): Promise<void> {
    const rows: Row[] = [];
    for (const { kind, byStatus } of sums.values()) {
      for (const [status, count] of byStatus) {
        if (count === 0) continue;
        const row: Row = {};
        for (const column of this.#columns) row[column] = kind[column] as string;
        rows.push(Object.assign(row, { status, writer, count }));
      }
    }
    if (rows.length === 0) return;
    // SQLite has one writer at a time, and its rows need no order.
    const ordered = tx.dialect === 'sqlite' ? rows : inOrder(this.#names, rows);
    await tx.each(this.#add, rowsParams(tx.dialect, ordered, this.#types));
  }
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
