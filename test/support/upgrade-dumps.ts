/**
 * Dumps of databases in `test/fixtures/upgrade`, a folder for each version of the schema: made once, restored for ever.
 * `releases.json` names the dump of each release.
 */
import { execFile } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { gunzipSync, gzipSync } from 'node:zlib';
import pg from 'pg';
import { sqliteFile } from '../../src/adapters/database/sqlite.ts';
import type { Engine } from './databases.ts';
import { findPostgres } from './postgres.ts';
import type { Filled } from './upgrade-world.ts';

const folder = join(import.meta.dirname, '../fixtures/upgrade');
const dumpFile = { SQLite: 'sqlite.db.gz', PostgreSQL: 'postgres.sql.gz' };
const factsFile = { SQLite: 'sqlite.json.gz', PostgreSQL: 'postgres.json.gz' };

const releasesFile = join(folder, 'releases.json');

/** What is known of a dump. */
export interface Facts extends Filled {
  /** When it was made, in milliseconds. */
  readonly madeAt: number;
}

/** The names of all dumps: each is that of the last migration which its databases have. */
export const dumps: readonly string[] = readdirSync(folder).filter((name) => /^\d{4}-/.test(name));

/** The dumps of releases, by version. */
export function releasedDumps(): Record<string, string> {
  return JSON.parse(readFileSync(releasesFile, 'utf8'));
}

/** Whether all files of a dump are there. */
export function isWhole(dump: string): boolean {
  const files = [...Object.values(dumpFile), ...Object.values(factsFile)];
  return files.every((file) => existsSync(join(folder, dump, file)));
}

/** Names the dump of the version of this checkout. */
export function recordRelease(version: string, dump: string): void {
  const releases = { ...releasedDumps(), [version]: dump };
  writeFileSync(releasesFile, `${JSON.stringify(releases, null, 2)}\n`);
}

export function readFacts(dump: string, engine: Engine['name']): Facts {
  return JSON.parse(readPacked(dump, factsFile[engine]).toString('utf8')) as Facts;
}

/** Puts the dump into a place where nothing is. */
export async function restoreDump(
  dump: string,
  engine: Engine['name'],
  place: string,
): Promise<void> {
  const bytes = readPacked(dump, dumpFile[engine]);
  if (engine === 'SQLite') {
    writeFileSync(sqliteFile(place), bytes);
    return;
  }
  const client = new pg.Client({ connectionString: place });
  await client.connect();
  try {
    await client.query(bytes.toString('utf8'));
  } finally {
    await client.end();
  }
}

/** Makes the dump of a database that may be in use. */
export async function writeDump(
  dump: string,
  engine: Engine['name'],
  place: string,
  facts: Facts,
): Promise<void> {
  mkdirSync(join(folder, dump), { recursive: true });
  const bytes = engine === 'SQLite' ? dumpSqlite(place) : await dumpPostgres(place);
  writePacked(dump, dumpFile[engine], bytes);
  writePacked(dump, factsFile[engine], Buffer.from(JSON.stringify(facts)));
}

function dumpSqlite(place: string): Buffer {
  const directory = mkdtempSync(join(tmpdir(), 'skillwright-dump-'));
  const file = join(directory, 'copy.db');
  const store = new DatabaseSync(sqliteFile(place));
  try {
    store.prepare('VACUUM INTO ?').run(file);
    return readFileSync(file);
  } finally {
    store.close();
    rmSync(directory, { recursive: true });
  }
}

async function dumpPostgres(url: string): Promise<Buffer> {
  const program = join(findPostgres() ?? '', 'pg_dump');
  const options = ['--inserts', '--no-owner', '--no-privileges', `--dbname=${url}`];
  const { stdout } = await promisify(execFile)(program, options, { maxBuffer: 64 * 1024 * 1024 });
  // Commands of psql, which is not what restores it.
  return Buffer.from(stdout.replace(/^\\.*$/gm, ''));
}

function readPacked(dump: string, file: string): Buffer {
  return gunzipSync(readFileSync(join(folder, dump, file)));
}

function writePacked(dump: string, file: string, bytes: Buffer): void {
  writeFileSync(join(folder, dump, file), gzipSync(bytes, { level: 9 }));
}
