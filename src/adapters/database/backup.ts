/**
 * A copy of the embedded database, made while a platform works on it. The lock on the directory
 * keeps two platforms apart; one more reader does no harm. This one opens the database for reading
 * alone, so it never writes a page of it, not even as the last that leaves.
 */
import { closeSync, existsSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { syncToDisk } from '../../kernel/directory.ts';
import { sqliteFile } from './sqlite.ts';

/**
 * All pages in one step, hence in one reading transaction: between two steps other processes may
 * write, and every write of theirs would make the copy begin again.
 */
const pagesAtATime = 2_147_483_647;
/** For the moments in which a platform that starts or stops has the database to itself. */
const busyTimeoutMs = 10_000;
/** SQLite's code for a disk without room. */
const sqliteFull = 13;

/**
 * Copies the database in `dataDir` into a new file, as it is at one moment, and checks the copy. The
 * file is there only once it is whole and on disk. Throws a sentence when it cannot be.
 */
export async function backUpSqlite(dataDir: string, file: string): Promise<{ bytes: number }> {
  const database = sqliteFile(dataDir);
  if (!existsSync(database)) {
    throw new Error(`DATA_DIR: there is no embedded database in ${dataDir}`);
  }
  if (existsSync(file)) throw new Error(`${file} is there already: give the name of a new file`);
  const partial = `${file}.partial`;
  removeCopy(partial);
  try {
    // For this user alone: there are secrets of webhooks in it.
    closeSync(openSync(partial, 'wx', 0o600));
    const source = new DatabaseSync(database, { readOnly: true, timeout: busyTimeoutMs });
    try {
      await backup(source, partial, { rate: pagesAtATime });
    } finally {
      source.close();
    }
    const bytes = checked(partial);
    syncToDisk(partial);
    renameSync(partial, file);
    syncToDisk(dirname(file));
    return { bytes };
  } catch (error) {
    removeCopy(partial);
    if (!isOfCopy(error)) throw error;
    throw new Error(`${file} cannot be made: ${error.message}`, { cause: error });
  }
}

/** Whether it tells of the place of the copy, for the database is only read: a system call, no room. */
function isOfCopy(error: unknown): error is Error {
  const { syscall, errcode } = error as { syscall?: string; errcode?: number };
  return syscall !== undefined || errcode === sqliteFull;
}

/** Makes the copy a single file, and reads all of it; how large it is. */
function checked(copy: string): number {
  const database = new DatabaseSync(copy);
  try {
    database.exec('PRAGMA journal_mode = DELETE');
    const found = database.prepare('PRAGMA quick_check(1)').get() as { quick_check: string };
    if (found.quick_check !== 'ok') {
      throw new Error(`The copy is damaged, as the database may be: ${found.quick_check}`);
    }
    const size = 'SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size';
    return Number(database.prepare(size).get()?.['bytes']);
  } finally {
    database.close();
  }
}

/** The keys of the bytes of files that a copy names. */
export function blobsOfCopy(copy: string): string[] {
  const database = new DatabaseSync(copy, { readOnly: true });
  try {
    const rows = database.prepare('SELECT blob_key FROM file_blobs ORDER BY blob_key').all();
    return rows.map(({ blob_key }) => String(blob_key));
  } finally {
    database.close();
  }
}

function removeCopy(file: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal'])
    rmSync(`${file}${suffix}`, { force: true });
}
