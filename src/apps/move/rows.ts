/** Copies rows from SQLite to PostgreSQL in batches, so that memory is bounded. */
import { type Kysely, sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { CopiedTable } from './plan.ts';

/** Limits of one statement: rows, and characters, which a single row may exceed. */
const batchRowsMax = 2_000;
const batchCharactersMax = 2_000_000;

type Value = string | number | Uint8Array | null;
type Row = Record<string, Value>;

/** Copies all rows, and returns their number. */
export async function copyRows(
  source: Handle,
  tx: Transaction,
  table: CopiedTable,
): Promise<number> {
  // Typed as any table, because the table is known only at run time.
  const anyTable = source.kysely as unknown as Kysely<Record<string, Row>>;
  const names = table.columns.map(({ name }) => name);
  const insert = insertInto(tx, table);
  let batch = emptyBatch(table);
  let copied = 0;
  let under: Promise<unknown> = Promise.resolve();
  // The next batch is read while PostgreSQL works on the last one.
  const flush = async () => {
    await under;
    copied += batch.rows;
    under = insert(batch);
    // The caller that awaits it gets the error.
    under.catch(() => {});
    batch = emptyBatch(table);
  };
  for await (const row of anyTable.selectFrom(table.name).select(names).stream()) {
    add(batch, table, row);
    if (batch.rows >= batchRowsMax || batch.characters >= batchCharactersMax) await flush();
  }
  if (batch.rows > 0) await flush();
  await under;
  return copied;
}

/** The values of each column, as elements of a PostgreSQL array's text. */
interface Batch {
  readonly columns: readonly string[][];
  rows: number;
  characters: number;
}

function emptyBatch({ columns }: CopiedTable): Batch {
  return { columns: columns.map(() => []), rows: 0, characters: 0 };
}

function add(batch: Batch, { name: table, columns }: CopiedTable, row: Row): void {
  batch.rows += 1;
  for (const [i, { name, type }] of columns.entries()) {
    const element = elementOf(row[name], type);
    if (element === null) {
      throw new Error(
        `The column ${name} of ${table} holds what is neither text nor a number nor bytes`,
      );
    }
    batch.characters += element.length;
    batch.columns[i]?.push(element);
  }
}

const special = /["\\]/g;

/** A value as an element of an array's text; null for one that has no such form. */
function elementOf(value: unknown, type: string): string | null {
  if (value === null) return 'NULL';
  if (typeof value === 'string') return `"${value.replace(special, '\\$&')}"`;
  if (value instanceof Uint8Array) {
    const hex = Buffer.from(value).toString('hex');
    return type === 'varbit' ? `x${hex}` : `"\\\\x${hex}"`;
  }
  return Number.isFinite(value) ? String(value) : null;
}

/** One array for each column: as parameters of their own the values would cost more than their insertion. */
function insertInto(tx: Transaction, { name, columns, constants }: CopiedTable) {
  const into = [...columns.map((column) => column.name), ...Object.keys(constants)];
  const refs = sql.join(into.map((column) => sql.ref(column)));
  const more = Object.values(constants).map((value) => sql`, ${sql.lit(value)}`);
  return (batch: Batch) => {
    const arrays = columns.map(
      ({ type }, i) => sql`${`{${batch.columns[i]?.join()}}`}::${sql.id(type)}[]`,
    );
    return sql`insert into ${sql.table(name)} (${refs})
      select rows.* ${sql.join(more, sql``)} from unnest(${sql.join(arrays)}) as rows`.execute(
      tx.kysely,
    );
  };
}
