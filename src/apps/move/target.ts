/** The PostgreSQL database that an embedded installation is moved into. */
import { sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { CopiedTable } from './plan.ts';

const lockTimeoutMs = 5_000;

/** Locks these tables against all other transactions until this one ends. */
export async function holdTables(tx: Transaction, names: readonly string[]): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(lockTimeoutMs)}`.execute(tx.kysely);
  const tables = sql.join(names.map((name) => sql.table(name)));
  try {
    await sql`lock table ${tables} in access exclusive mode`.execute(tx.kysely);
  } catch (error) {
    if ((error as { code?: unknown }).code !== '55P03') throw error;
    throw new Error(
      'The PostgreSQL database is in use: stop whatever uses it, another move too, and try again',
      { cause: error },
    );
  }
}

/** Throws an error for the operator when a table has rows. */
export async function refuseData(tx: Transaction, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const { rows } = await sql`select 1 from ${sql.table(name)} limit 1`.execute(tx.kysely);
    if (rows.length === 0) continue;
    throw new Error(
      `The PostgreSQL database has data already (rows in ${name}): give an empty one as DATABASE_URL. A platform that was started on it has left such rows too.`,
    );
  }
}

/**
 * Drops the indexes that enforce no constraint; the returned function creates them again. Building an
 * index costs far less than maintaining it while rows are inserted.
 */
export async function withoutIndexes(
  tx: Transaction,
  names: readonly string[],
): Promise<() => Promise<void>> {
  const { rows } = await sql<{ name: string; definition: string }>`
    select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
    from pg_index i join pg_class t on t.oid = i.indrelid
    where t.relnamespace = current_schema()::regnamespace
      and t.relname in (${sql.join(names)})
      and not exists (select from pg_constraint c where c.conindid = i.indexrelid)
    order by 1`.execute(tx.kysely);
  for (const { name } of rows) await sql`drop index ${sql.raw(name)}`.execute(tx.kysely);
  return async () => {
    for (const { definition } of rows) await sql.raw(definition).execute(tx.kysely);
  };
}

/** Sets PostgreSQL's sequences to continue after the greatest copied number. */
export async function setSequences(tx: Transaction, table: CopiedTable): Promise<void> {
  for (const column of table.numbered) {
    const sequence = sql`pg_get_serial_sequence(${table.name}, ${column})`;
    await sql`select setval(${sequence}, max(${sql.ref(column)})) from ${sql.table(table.name)}
      having max(${sql.ref(column)}) is not null`.execute(tx.kysely);
  }
}

/** Updates the planner's statistics, which autovacuum would not do before the first queries. */
export async function analyze(tx: Transaction, names: readonly string[]): Promise<void> {
  await sql`analyze ${sql.join(names.map((name) => sql.table(name)))}`.execute(tx.kysely);
}

export async function countRows(db: Handle, name: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*) as count from ${sql.table(name)}`.execute(db.kysely);
  return Number(rows[0]?.count);
}

/** The table that records the move which filled the database; dumps include it. */
const recordedAt = sql`${sql.table('organizations')}`;

/** Records which move filled this database. */
export async function recordMove(tx: Transaction, id: string): Promise<void> {
  await sql`comment on table ${recordedAt} is ${sql.lit(`moved here: ${id}`)}`.execute(tx.kysely);
}

/** Whether it was this move that filled the database. */
export async function wasMovedHere(tx: Transaction, id: string): Promise<boolean> {
  const { rows } = await sql<{ comment: string | null }>`
    select obj_description('organizations'::regclass) as comment`.execute(tx.kysely);
  return rows[0]?.comment === `moved here: ${id}`;
}
