/** Looks at a database without changing it: for commands that tell what is wrong with an installation. */
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { knownMigrations } from './migrate.ts';
import { sqliteFile } from './sqlite.ts';

const timeoutMs = 5_000;

export interface Inspected {
  /** Migrations of this program that the database does not have yet. */
  readonly missing: readonly string[];
  /** Migrations of a newer program. */
  readonly unknown: readonly string[];
}

export interface InspectedSqlite extends Inspected {
  /** Whether it has secrets that only the encryption key can read. */
  readonly hasSealedSecrets: boolean;
  /** When the newest job was accepted, in milliseconds; null without jobs. */
  readonly newestJobAt: number | null;
}

/** Null where there is no database yet. Throws what SQLite says of one that cannot be read. */
export function inspectSqlite(dataDir: string): InspectedSqlite | null {
  const file = sqliteFile(dataDir);
  if (!existsSync(file)) return null;
  const database = new DatabaseSync(file, { readOnly: true, timeout: timeoutMs });
  try {
    const tables = database.prepare("select name from sqlite_master where type = 'table'").all();
    const names = new Set(tables.map(({ name }) => String(name)));
    const ask = (table: string, query: string) =>
      names.has(table) ? database.prepare(query).all() : [];
    const applied = ask('kysely_migration', 'select name from kysely_migration');
    const sealed = [
      ask('webhooks', 'select 1 from webhooks where secret_sealed = 1 limit 1'),
      ask('credentials', 'select 1 from credentials limit 1'),
    ];
    const [newest] = ask('jobs', 'select created_at from jobs order by id desc limit 1');
    return {
      ...compared(applied.map(({ name }) => String(name))),
      hasSealedSecrets: sealed.some((rows) => rows.length > 0),
      newestJobAt: newest === undefined ? null : Number(newest['created_at']),
    };
  } finally {
    database.close();
  }
}

export interface InspectedPostgres extends Inspected {
  /** Milliseconds by which its clock is ahead of this machine's. */
  readonly aheadMs: number;
}

export async function inspectPostgres(url: string): Promise<InspectedPostgres> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  // Told by the query that is under way.
  client.on('error', () => {});
  await client.connect();
  try {
    const before = Date.now();
    const clock = await client.query<{ ms: string }>(
      'select extract(epoch from clock_timestamp()) * 1000 as ms',
    );
    const aheadMs = Number(clock.rows[0]?.ms) - (before + Date.now()) / 2;
    const table = await client.query<{ found: string | null }>(
      "select to_regclass('kysely_migration')::text as found",
    );
    const applied =
      (table.rows[0]?.found ?? null) === null
        ? []
        : (await client.query<{ name: string }>('select name from kysely_migration')).rows;
    return { ...compared(applied.map(({ name }) => name)), aheadMs };
  } finally {
    await client.end();
  }
}

function compared(applied: readonly string[]): Inspected {
  return {
    missing: knownMigrations.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !knownMigrations.includes(name)),
  };
}
