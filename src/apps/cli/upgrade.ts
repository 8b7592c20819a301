/** `skillwright upgrade --check`: runs this version's migrations on a copy of the database. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { backUpSqlite } from '../../adapters/database/backup.ts';
import { inspectPostgres, inspectSqlite } from '../../adapters/database/inspect.ts';
import { openSqlite, sqliteFile } from '../../adapters/database/sqlite.ts';
import { createLogger } from '../../kernel/log.ts';
import { CliError, exitCodes } from './exit-codes.ts';
import { postgresFault } from './findings/connection-faults.ts';
import { type Io, writeJson } from './io.ts';
import { readDataSettings } from './settings.ts';

interface Result {
  readonly missing: readonly string[];
  /** Null where nothing was tried. */
  readonly seconds: number | null;
  /** How many rows they were tried with; null for all of them. */
  readonly rows: number | null;
}

/** Throws CliError where an upgrade would fail. */
export async function checkUpgrade(io: Io, { json }: { json?: boolean }): Promise<void> {
  const { dataDir, databaseUrl } = readDataSettings(io.env);
  const result = databaseUrl === null ? await tryOnCopy(dataDir) : await tryBeside(databaseUrl);
  if (json) return writeJson(io, { ...result, migrations: result.missing.length });
  const { missing, seconds, rows } = result;
  if (seconds === null) {
    io.stdout.write('The database has the schema of this version.\n');
    return;
  }
  const count = `${missing.length} migrations (${missing.join(', ')})`;
  const copy = rows === null ? 'a copy' : `a copy of the schema with ${rows} rows`;
  io.stdout.write(`On ${copy}, ${count} ran in ${seconds.toFixed(1)} s. It was removed.\n`);
  if (rows === null) return;
  const advice = 'To try them with all rows, and to learn how long they take, restore a dump';
  io.stdout.write(`${advice} (pg_dump) and give its address as DATABASE_URL to a start.\n`);
}

async function tryBeside(url: string): Promise<Result> {
  try {
    const { missing, unknown } = await inspectPostgres(url);
    refuseNewer(unknown);
    if (missing.length === 0) return { missing, seconds: null, rows: null };
    const { tryMigrations } = await import('../../adapters/database/try-migrations.ts');
    return { missing, ...(await tryMigrations(url, missing)) };
  } catch (error) {
    // The server's own word, and not that of a migration.
    if (!(error instanceof Error && 'code' in error)) throw error;
    const { message, remedy } = postgresFault(url, error);
    throw new CliError(`${message}: ${remedy}`, exitCodes.failed);
  }
}

/** The copy is beside the data; the command fails with a message where there is no room for it. */
async function tryOnCopy(dataDir: string): Promise<Result> {
  const found = await inspectSqlite(dataDir);
  if (found === null) throw new Error(`DATA_DIR: there is no embedded database in ${dataDir}`);
  refuseNewer(found.unknown);
  if (found.missing.length === 0) return { missing: [], seconds: null, rows: null };
  const copy = await mkdtemp(join(dataDir, 'upgrade-check-'));
  try {
    await backUpSqlite(dataDir, sqliteFile(copy));
    const begun = performance.now();
    const database = await openSqlite(copy, createLogger('error'));
    await database.close();
    return { missing: found.missing, seconds: (performance.now() - begun) / 1_000, rows: null };
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

function refuseNewer([newest]: readonly string[]): void {
  if (newest === undefined) return;
  const message = `The database was last used by a newer Skillwright (it has migration ${newest}): run that version, or restore a backup from before the upgrade`;
  throw new CliError(message, exitCodes.failed);
}
