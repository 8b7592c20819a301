/**
 * SQLite through node:sqlite, for one process. One connection writes, one reads, so a read never
 * sees half a transaction. Writes that wait together share one commit (`group-commit.ts`), hence one
 * fsync (WAL, synchronous=FULL). Never used by two processes at once: a lock on a file beside the
 * database, released by the kernel however the process ends, sees to it.
 */
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { type Insertable, Kysely, SqliteDialect } from 'kysely';
import { keepPrivate, makeDirectory, makePrivateFile } from '../../kernel/directory.ts';
import type { Logger } from '../../kernel/log.ts';
import type { Database, Handle } from './database.ts';
import { GroupCommit, Writer } from './group-commit.ts';
import { migrate } from './migrate.ts';
import { refuseMovedDirectory } from './move-marker.ts';
import { isBusy, isDamaged, translated } from './sqlite-errors.ts';
import { type CompiledStatement, compileInsert, type Statement } from './statement.ts';
import type { Tables } from './tables.ts';
import { findWal } from './wal.ts';
import { reportWalLoss } from './wal-loss.ts';

/** Turns of the event loop that `emptyLog` waits for the end of a transaction. */
const turnsMax = 1_000;

/** The database in a data directory. */
export const sqliteFile = (dataDir: string): string => join(dataDir, 'skillwright.db');

/** The file whose lock says that a process has the directory. */
export const lockFile = (dataDir: string): string => join(dataDir, 'skillwright.lock');

/** Statements kept prepared for ad-hoc queries; list filters make a bounded variety of texts. */
const preparedMax = 500;

/**
 * Opens (and migrates) the database in `dataDir`. Throws a sentence for the operator when another
 * process uses the directory, or when its content was moved into PostgreSQL, unless `evenIfMoved`.
 */
export async function openSqlite(
  dataDir: string,
  log: Logger,
  { evenIfMoved = false } = {},
): Promise<Database> {
  const opened = [lockDirectory(dataDir)];
  // SQLite gives its files beside the database the mode that the database has.
  for (const suffix of ['-wal', '-shm']) keepPrivate(sqliteFile(dataDir) + suffix);
  makePrivateFile(sqliteFile(dataDir));
  const open = () => {
    const connection = new DatabaseSync(sqliteFile(dataDir));
    opened.push(connection);
    return connection;
  };
  const closeAll = () => {
    for (const connection of opened.splice(0).reverse()) connection.close();
  };
  try {
    if (!evenIfMoved) refuseMovedDirectory(dataDir);
    const wal = findWal(sqliteFile(dataDir));
    const writer = open();
    writer.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;',
    );
    // Before the first write, which may overwrite what was left out.
    writer.prepare('SELECT count(*) FROM sqlite_schema').get();
    reportWalLoss(writer, sqliteFile(dataDir), wal, log);
    // Checkpoints move each dirty page once however often it was written: fewer, larger ones cost less.
    // Its cache stays as small as SQLite makes it: a commit may look through the table of all cached pages.
    writer.exec('PRAGMA wal_autocheckpoint = 8000;');
    // Overwrites what rows have left in the file, so that erased data and replaced secrets cannot be read in its bytes.
    writer.exec('PRAGMA secure_delete = ON;');
    const writeHandle = handleOver(writer);
    await migrateAll(writer, writeHandle, log);
    const reader = open();
    reader.exec('PRAGMA query_only = ON; PRAGMA cache_size = -16000;');
    return databaseOver(writer, writeHandle, reader, closeAll);
  } catch (error) {
    closeAll();
    throw isDamaged(error) ? damaged(dataDir, error as Error) : error;
  }
}

/** A database that has the schema of this program and nothing else; made once in a process. */
let emptyImage: Promise<Uint8Array> | undefined;

/**
 * Opens a database in memory, which ends with the process, for the tests of skills. It has one connection, so a read may
 * see half of a transaction. Authors may test with an older Node, which cannot copy a database: each is migrated there.
 */
export async function openInMemory(log: Logger): Promise<Database> {
  const connection = new DatabaseSync(':memory:');
  const handle = handleOver(connection);
  if ('deserialize' in connection) {
    emptyImage ??= makeEmptyImage(log);
    connection.deserialize(await emptyImage);
  } else await migrateAll(connection, handle, log);
  return databaseOver(connection, handle, connection, () => connection.close());
}

async function makeEmptyImage(log: Logger): Promise<Uint8Array> {
  const connection = new DatabaseSync(':memory:');
  await migrateAll(connection, handleOver(connection), log);
  const image = connection.serialize();
  connection.close();
  return image;
}

async function migrateAll(writer: DatabaseSync, handle: Handle, log: Logger): Promise<void> {
  writer.exec('BEGIN IMMEDIATE');
  await migrate(handle.kysely, 'sqlite', log);
  writer.exec('COMMIT');
}

function databaseOver(
  writer: DatabaseSync,
  writeHandle: Handle,
  reader: DatabaseSync,
  closeAll: () => void,
): Database {
  const groups = new GroupCommit(new Writer(writer), writeHandle);
  return {
    read: reader === writer ? writeHandle : handleOver(reader),
    write: (unit) => groups.write(unit),
    async ping() {
      translated(() => reader.prepare('SELECT 1').get());
    },
    async emptyLog() {
      // A checkpoint needs a moment without a transaction; there is one between two groups.
      for (let turn = 0; groups.isRunning && turn < turnsMax; turn++) await yieldToEventLoop();
      if (groups.isRunning) return false;
      const row = translated(() => writer.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get());
      return row?.['busy'] === 0;
    },
    connections: () => ({ active: groups.isRunning ? 1 : 0, idle: groups.isRunning ? 1 : 2 }),
    async close() {
      await groups.close();
      closeAll();
    },
  };
}

function damaged(dataDir: string, cause: Error): Error {
  return new Error(
    `The database ${sqliteFile(dataDir)} is damaged (${cause.message}): keep a copy of ${dataDir}, and restore a backup into it (docs/backup.md)`,
    { cause },
  );
}

/** Takes the directory for this process alone. */
function lockDirectory(dataDir: string): DatabaseSync {
  makeDirectory(dataDir);
  const file = lockFile(dataDir);
  makePrivateFile(file);
  const lock = new DatabaseSync(file);
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;');
    return lock;
  } catch (cause) {
    lock.close();
    if (!isBusy(cause)) {
      const reason = (cause as Error).message;
      throw new Error(`${file} cannot be locked (${reason}): delete it, if no platform uses it`, {
        cause,
      });
    }
    throw new Error(
      `The data directory ${dataDir} is in use by another Skillwright process: stop it, or set DATA_DIR to another directory.`,
      { cause },
    );
  }
}

interface Prepared {
  readonly statement: StatementSync;
  readonly compiled: CompiledStatement;
}

/** Queries over one connection. Synchronous underneath: a promise here is always already settled. */
function handleOver(connection: DatabaseSync): Handle {
  const kysely = new Kysely<Tables>({ dialect: dialectOver(connection) });
  const prepared = new Map<object | string, Prepared>();

  const preparedAs = (key: object | string, compiled: () => CompiledStatement): Prepared => {
    let found = prepared.get(key);
    if (found === undefined) {
      const made = compiled();
      const statement = translated(() => connection.prepare(made.text));
      found = { statement, compiled: made };
      prepared.set(key, found);
    }
    return found;
  };
  const preparedFor = <P, R>(source: Statement<P, R>) =>
    preparedAs(source, () => source.compiledFor(kysely, 'sqlite'));
  const insertFor = (table: string, columns: string[]) =>
    preparedAs(`${table}:${columns.join()}`, () => compileInsert(table, columns));
  const runEach = ({ statement, compiled }: Prepared, params: readonly unknown[]) =>
    translated(() => {
      for (const one of params) statement.run(...bound(compiled, one));
    });

  return {
    dialect: 'sqlite',
    kysely,
    async all<P, R>(source: Statement<P, R>, params: P) {
      const { statement, compiled } = preparedFor(source);
      return translated(() => statement.all(...bound(compiled, params)) as R[]);
    },
    async first<P, R>(source: Statement<P, R>, params: P) {
      const { statement, compiled } = preparedFor(source);
      return translated(() => statement.get(...bound(compiled, params)) as R | undefined);
    },
    async each<P>(source: Statement<P, unknown>, params: readonly P[]) {
      runEach(preparedFor(source), params);
    },
    async changes<P>(source: Statement<P, unknown>, params: readonly P[]) {
      const { statement, compiled } = preparedFor(source);
      return translated(() =>
        params.map((one) => Number(statement.run(...bound(compiled, one)).changes)),
      );
    },
    async insert<T extends keyof Tables>(table: T, rows: readonly Insertable<Tables[T]>[]) {
      const [row] = rows;
      if (row !== undefined) runEach(insertFor(table, Object.keys(row)), rows);
    },
  };
}

function bound(compiled: CompiledStatement, params: unknown): SQLInputValue[] {
  return compiled.bind(params) as SQLInputValue[];
}

/** Lets Kysely's own SQLite dialect speak to node:sqlite, with statements kept prepared. */
function dialectOver(connection: DatabaseSync): SqliteDialect {
  const statements = new Map<string, StatementSync>();
  return new SqliteDialect({
    database: {
      close() {},
      prepare(text: string) {
        let statement = statements.get(text);
        if (statement === undefined) {
          if (statements.size >= preparedMax) statements.clear();
          statement = translated(() => connection.prepare(text));
          statements.set(text, statement);
        }
        const cached = statement;
        return {
          reader: cached.columns().length > 0,
          all: (values: readonly unknown[]) =>
            translated(() => cached.all(...(values as SQLInputValue[]))),
          run: (values: readonly unknown[]) =>
            translated(() => cached.run(...(values as SQLInputValue[]))),
          iterate: (values: readonly unknown[]) =>
            cached.iterate(...(values as SQLInputValue[])) as IterableIterator<unknown>,
        };
      },
    },
  });
}
