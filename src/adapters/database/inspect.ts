/** Looks at a database without changing it: for commands that tell what is wrong with an installation. */
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { adopted, knownMigrations } from './migrate.ts';
import { type SealedValue, sealedValues } from './sealed-values.ts';
import { lockFile, sqliteFile } from './sqlite.ts';
import { isBusy } from './sqlite-errors.ts';

const timeoutMs = 5_000;
/** A table that a migration holds is not waited for. */
const lockTimeoutMs = 1_000;

export interface Inspected {
  /** Migrations of this program that the database does not have yet. */
  readonly missing: readonly string[];
  /** Whether no program has made its tables yet. */
  readonly isEmpty: boolean;
  /** Migrations of a newer program. */
  readonly unknown: readonly string[];
  /** Some of the values that only the encryption key can read. */
  readonly sealed: readonly SealedValue[];
  /** Providers of models that some organization has credentials for. */
  readonly providers: readonly string[];
}

/** Unknown where the file of the lock cannot be read. */
export type DirectoryUse = 'free' | 'taken' | 'unknown';

/** Whether a process has the data directory, as `openSqlite` takes it. */
export function directoryUse(dataDir: string): DirectoryUse {
  const file = lockFile(dataDir);
  if (!existsSync(file)) return 'free';
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(file, { readOnly: true });
    lock.prepare('select count(*) from sqlite_master').get();
    return 'free';
  } catch (error) {
    return isBusy(error) ? 'taken' : 'unknown';
  } finally {
    lock?.close();
  }
}

export interface InspectedSqlite extends Inspected {
  /** When the newest job was accepted, in milliseconds; null without jobs. */
  readonly newestJobAt: number | null;
}

/** Null where there is no database yet. Throws what SQLite says of one that cannot be read. */
export async function inspectSqlite(dataDir: string): Promise<InspectedSqlite | null> {
  const file = sqliteFile(dataDir);
  if (!existsSync(file)) return null;
  const database = new DatabaseSync(file, { readOnly: true, timeout: timeoutMs });
  try {
    const tables = database.prepare("select name from sqlite_master where type = 'table'").all();
    const names = new Set(tables.map(({ name }) => String(name)));
    const ask = (table: string, query: string) =>
      names.has(table) ? database.prepare(query).all() : [];
    const compared = compare(ask('kysely_migration', migrationsQuery));
    const [newest] = ask('jobs', 'select created_at from jobs order by id desc limit 1');
    return {
      ...compared,
      sealed: await sealedOf(compared, async (query) => database.prepare(query).all()),
      providers: providersIn(ask('credentials', providersQuery)),
      newestJobAt: newest === undefined ? null : Number(newest['created_at']),
    };
  } finally {
    database.close();
  }
}

export interface InspectedPostgres extends Inspected {
  /** Milliseconds by which its clock is ahead of this machine's. */
  readonly aheadMs: number;
  /** Such as 150004 for 15.4. */
  readonly version: number;
  /** Whether it takes no writes, as a standby does. */
  readonly isReadOnly: boolean;
  /** Whether the user may create tables, as migrations do. */
  readonly mayCreate: boolean;
}

const postgresFacts = `select extract(epoch from clock_timestamp()) * 1000 as ms,
  current_setting('server_version_num')::int as version,
  (pg_is_in_recovery() or current_setting('default_transaction_read_only')::bool) as is_read_only,
  coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) as may_create,
  to_regclass('kysely_migration') is not null as has_migrations,
  to_regclass('credentials') is not null as has_credentials`;

interface PostgresFacts {
  readonly ms: string;
  readonly version: number;
  readonly is_read_only: boolean;
  readonly may_create: boolean;
  readonly has_migrations: boolean;
  readonly has_credentials: boolean;
}

/** Throws the driver's error of a server that does not answer or refuses the connection. */
export async function inspectPostgres(
  url: string,
  now: () => number = Date.now,
): Promise<InspectedPostgres> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    lock_timeout: lockTimeoutMs,
    application_name: 'skillwright doctor',
  });
  // Told by the query that is under way.
  client.on('error', () => {});
  await client.connect();
  const rows = async (query: string) => (await client.query(query)).rows;
  try {
    const before = now();
    const [facts] = (await rows(postgresFacts)) as [PostgresFacts];
    const aheadMs = Number(facts.ms) - (before + now()) / 2;
    const compared = compare(facts.has_migrations ? await rows(migrationsQuery) : []);
    return {
      ...compared,
      sealed: await sealedOf(compared, rows),
      providers: providersIn(facts.has_credentials ? await rows(providersQuery) : []),
      ...{ aheadMs, version: facts.version },
      ...{ isReadOnly: facts.is_read_only, mayCreate: facts.may_create },
    };
  } finally {
    await client.end();
  }
}

const migrationsQuery = 'select name from kysely_migration';
const providersQuery = 'select distinct provider from credentials limit 1000';

function providersIn(rows: readonly { readonly provider?: unknown }[]): string[] {
  return rows.map(({ provider }) => String(provider));
}

function compare(
  migrations: readonly { readonly name?: unknown }[],
): Pick<Inspected, 'missing' | 'unknown' | 'isEmpty'> {
  const applied = adopted(migrations.map(({ name }) => String(name)));
  return {
    isEmpty: applied.length === 0,
    missing: knownMigrations.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !knownMigrations.includes(name)),
  };
}

/** A schema of another version may lack a table or a column: its values are not looked at. */
async function sealedOf(
  { missing, unknown }: Pick<Inspected, 'missing' | 'unknown'>,
  ask: (query: string) => Promise<unknown[]>,
): Promise<SealedValue[]> {
  const isOurs = missing.length === 0 && unknown.length === 0;
  const found: SealedValue[] = [];
  for (const { query, contextOf } of sealedValues) {
    try {
      const rows = (await ask(query)) as { sealed: string }[];
      found.push(
        ...rows.map((row) => ({ text: row.sealed, context: contextOf(row as unknown as never) })),
      );
    } catch (error) {
      if (isOurs) throw error;
    }
  }
  return found;
}
