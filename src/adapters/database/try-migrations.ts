/**
 * Tries this program's missing migrations beside a PostgreSQL that is in use: in a schema of its own, which the
 * migrations that the database has make anew, with some rows of each table. Promises that nothing outside of this
 * schema is changed, and that the platform waits for none of it: tables in use are only read, for some rows and
 * without waiting for their locks.
 */
import { Kysely, PostgresDialect, type RawBuilder, sql } from 'kysely';
import pg from 'pg';
import { knownMigrations, loadMigrations } from './migrate.ts';

const schema = 'skillwright_upgrade_check';
/** Rows of each table that the migrations are tried with. */
const rowsMax = 500;
const connectTimeoutMs = 5_000;
const lockTimeoutMs = 500;
const statementTimeoutMs = 30_000;

export interface TriedMigrations {
  readonly seconds: number;
  /** How many rows they were tried with. */
  readonly rows: number;
}

/** Throws what PostgreSQL says of a migration that fails, with its name. */
export async function tryMigrations(
  url: string,
  missing: readonly string[],
): Promise<TriedMigrations> {
  const pool = new pg.Pool({
    ...{ connectionString: url, max: 1, connectionTimeoutMillis: connectTimeoutMs },
    ...{ lock_timeout: lockTimeoutMs, statement_timeout: statementTimeoutMs },
    application_name: 'skillwright upgrade --check',
  });
  pool.on('error', () => {});
  const kysely = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) });
  try {
    // One connection, because the search path is that of a session.
    return await kysely.connection().execute((db) => tryIn(db, missing));
  } finally {
    await kysely.destroy();
  }
}

async function tryIn(db: Kysely<unknown>, missing: readonly string[]): Promise<TriedMigrations> {
  const live = await onlyValue(db, sql<Value>`select current_schema() as value`);
  const isAlone = sql<Value>`select pg_try_advisory_lock(hashtext(${schema})) as value`;
  if ((await onlyValue(db, isAlone)) !== true) {
    throw new Error('Another upgrade --check is under way on this database: wait until it ends');
  }
  // One that was killed may have left it.
  await drop(db);
  await sql`create schema ${sql.id(schema)}`.execute(db);
  try {
    // Without the schema in use, so that no migration can reach it.
    await sql`set search_path to ${sql.id(schema)}`.execute(db);
    const all = await loadMigrations('postgres');
    const up = async (name: string) => {
      try {
        await all[name]?.up(db);
      } catch (error) {
        const { message } = error as Error;
        throw new Error(`The migration ${name} fails on a copy: ${message}`, { cause: error });
      }
    };
    for (const name of knownMigrations) if (!missing.includes(name)) await up(name);
    const rows = await copyRows(db, String(live));
    const begun = performance.now();
    for (const name of knownMigrations) if (missing.includes(name)) await up(name);
    return { seconds: (performance.now() - begun) / 1_000, rows };
  } finally {
    await drop(db);
  }
}

async function drop(db: Kysely<unknown>): Promise<void> {
  await sql`drop schema if exists ${sql.id(schema)} cascade`.execute(db);
}

/** Copies some rows of each table. Throws where the schema in use is not what its migrations make. */
async function copyRows(db: Kysely<unknown>, live: string): Promise<number> {
  const [made, used] = [await columnsOf(db, schema), await columnsOf(db, live)];
  let copied = 0n;
  for (const [table, columns] of made) {
    const lacks = columns.find((column) => !used.get(table)?.includes(column));
    if (lacks !== undefined) {
      const what = `The database lacks the column ${lacks} of the table ${table}`;
      throw new Error(`${what}, which its migrations have made: restore a backup`);
    }
    const list = sql.join(columns.map((column) => sql.id(column)));
    const { numAffectedRows } = await sql`
      insert into ${sql.id(schema, table)} (${list}) overriding system value
      select ${list} from ${sql.id(live, table)} limit ${sql.lit(rowsMax)}`.execute(db);
    copied += numAffectedRows ?? 0n;
  }
  return Number(copied);
}

/** The columns of each table that are not computed. */
async function columnsOf(db: Kysely<unknown>, of: string): Promise<Map<string, string[]>> {
  const { rows } = await sql<{ name: string; columns: string[] }>`
    select relname::text as name, array_agg(attname::text order by attnum) as columns
    from pg_attribute join pg_class on pg_class.oid = attrelid
    where relnamespace = ${of}::regnamespace and relkind in ('r', 'p')
      and attnum > 0 and not attisdropped and attgenerated = ''
    group by relname order by relname`.execute(db);
  return new Map(rows.map(({ name, columns }) => [name, columns]));
}

interface Value {
  readonly value: unknown;
}

async function onlyValue(db: Kysely<unknown>, query: RawBuilder<Value>): Promise<unknown> {
  const { rows } = await query.execute(db);
  return rows[0]?.value;
}
