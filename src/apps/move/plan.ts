/**
 * The tables and columns to move, read from the two databases, so that a table of a later migration
 * needs no change here. A table or column that cannot be moved stops the move before its first row.
 */
import { sql, type TableMetadata } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { indexAllMemories } from '../../core/memories/index-all.ts';

/** A table that is copied row by row. */
export interface CopiedTable {
  readonly name: string;
  /** Those that both databases have, with PostgreSQL's name of their type. */
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  /** Columns that only PostgreSQL has, with their values for rows from SQLite. */
  readonly constants: Readonly<Record<string, string>>;
  /** Columns that PostgreSQL numbers by itself. */
  readonly numbered: readonly string[];
}

/** A table that is made from the copied rows, because the two databases store it differently. */
export interface DerivedTable {
  readonly name: string;
  make(tx: Transaction): Promise<void>;
}

export interface MovePlan {
  readonly copied: readonly CopiedTable[];
  readonly derived: readonly DerivedTable[];
}

const derivedTables: Readonly<Record<string, DerivedTable['make']>> = {
  memory_index: indexAllMemories,
};

const constants: Readonly<Record<string, CopiedTable['constants']>> = {
  // Cursors of SQLite have this transaction, and PostgreSQL's own transactions are all greater. So readers
  // get the unread events of SQLite in order and before all new ones.
  events: { txid: '0' },
};

/** Compares the two schemas. Throws an error that names a table or column it cannot move. */
export async function planMove(source: Handle, target: Handle): Promise<MovePlan> {
  const [kinds, from, into, generated] = await Promise.all([
    kindsOfTables(source),
    source.kysely.introspection.getTables(),
    tablesOf(target),
    generatedColumns(target),
  ]);
  const copied: CopiedTable[] = [];
  const derived: DerivedTable[] = [];
  for (const { name, columns } of from) {
    const kind = kinds.get(name);
    // Internal tables of a virtual table in SQLite.
    if (kind === 'shadow') continue;
    const twin = into.get(name);
    if (twin === undefined) throw unknown(`PostgreSQL has no table ${name}`);
    const make = derivedTables[name];
    if (make !== undefined) derived.push({ name, make });
    else if (kind === 'table') {
      const names = columns.map((column) => column.name);
      copied.push(copiedTable(names, twin, generated.get(name) ?? []));
    } else throw unknown(`it does not know what makes up the ${kind} table ${name}`);
  }
  return { copied, derived };
}

function copiedTable(
  columns: readonly string[],
  twin: TableMetadata,
  generated: readonly string[],
): CopiedTable {
  const there = new Set(twin.columns.map((column) => column.name));
  const missing = columns.find((column) => !there.has(column));
  if (missing !== undefined)
    throw unknown(`PostgreSQL's table ${twin.name} has no column ${missing}`);
  const filled = constants[twin.name] ?? {};
  const known = new Set([...columns, ...Object.keys(filled), ...generated]);
  const extra = twin.columns.find((column) => !known.has(column.name));
  if (extra !== undefined) {
    throw unknown(`it does not know what to put in the column ${extra.name} of ${twin.name}`);
  }
  return {
    name: twin.name,
    columns: twin.columns
      .filter(({ name }) => columns.includes(name))
      .map(({ name, dataType }) => ({ name, type: dataType })),
    constants: filled,
    numbered: twin.columns.filter((column) => column.isAutoIncrementing).map(({ name }) => name),
  };
}

/** `table`, `virtual`, `view`, or `shadow` for an internal table of a virtual one. */
async function kindsOfTables(source: Handle): Promise<Map<string, string>> {
  const { rows } = await sql<{ name: string; type: string }>`
    select name, type from pragma_table_list where schema = 'main'`.execute(source.kysely);
  return new Map(rows.map(({ name, type }) => [name, type]));
}

/** The tables in the schema of unqualified names; other schemas may belong to other programs. */
async function tablesOf(target: Handle): Promise<Map<string, TableMetadata>> {
  const { rows } = await sql<{ schema: string }>`select current_schema() as schema`.execute(
    target.kysely,
  );
  const tables = await target.kysely.introspection.getTables();
  return new Map(
    tables.filter(({ schema }) => schema === rows[0]?.schema).map((table) => [table.name, table]),
  );
}

/** Columns that PostgreSQL generates from others, by table. */
async function generatedColumns(target: Handle): Promise<Map<string, string[]>> {
  const { rows } = await sql<{ table: string; columns: string[] }>`
    select table_name as table, array_agg(column_name::text) as columns
    from information_schema.columns
    where table_schema = current_schema() and is_generated = 'ALWAYS'
    group by table_name`.execute(target.kysely);
  return new Map(rows.map(({ table, columns }) => [table, columns]));
}

function unknown(what: string): Error {
  return new Error(`This version cannot move the data: ${what}`);
}
