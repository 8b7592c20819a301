/**
 * SQLite through node:sqlite, for one process. One connection writes, one reads, so a read never
 * sees half a transaction. Writes that wait together share one commit, hence one fsync
 * (WAL, synchronous=FULL). Never used by two processes at once: a
 * lock on a file beside the database, released by the kernel however the process ends, sees to it.
 */
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { type Insertable, Kysely, SqliteDialect } from 'kysely';
import { keepPrivate, makeDirectory, makePrivateFile } from '../kernel/directory.ts';
import { PlatformError } from '../kernel/errors.ts';
import {
  asUnit,
  type Database,
  type Handle,
  refuseNesting,
  runAfterCommit,
  type Transaction,
} from './database.ts';
import { migrate } from './migrate.ts';
import { refuseMovedDirectory } from './move-marker.ts';
import { type CompiledStatement, compile, type Statement } from './statement.ts';
import type { Tables } from './tables.ts';

/** The database in a data directory. */
export const sqliteFile = (dataDir: string): string => join(dataDir, 'skillwright.db');

/** Units that may wait for the writer; beyond that the service answers that it is overloaded. */
const waitingMax = 10_000;
/** Units in one commit. */
const unitsPerCommitMax = 512;
/** Statements kept prepared for ad-hoc queries; list filters make a bounded variety of texts. */
const preparedMax = 500;

interface Waiting {
  run(tx: Transaction): Promise<unknown>;
  resolve(value: never): void;
  reject(error: unknown): void;
}

/**
 * Opens (and migrates) the database in `dataDir`. Throws a sentence for the operator when another
 * process uses the directory, or when its content was moved into PostgreSQL, unless `evenIfMoved`.
 */
export async function openSqlite(dataDir: string, { evenIfMoved = false } = {}): Promise<Database> {
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
    const writer = open();
    writer.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY;',
    );
    // Checkpoints move each dirty page once however often it was written: fewer, larger ones cost less.
    writer.exec('PRAGMA wal_autocheckpoint = 8000; PRAGMA cache_size = -16000;');
    const writeHandle = handleOver(writer);
    writer.exec('BEGIN IMMEDIATE');
    await migrate(writeHandle.kysely, 'sqlite');
    writer.exec('COMMIT');
    const reader = open();
    reader.exec('PRAGMA query_only = ON; PRAGMA cache_size = -16000;');

    const groups = groupCommit(writer, writeHandle);
    return {
      read: handleOver(reader),
      write: groups.write,
      async ping() {
        translated(() => reader.prepare('SELECT 1').get());
      },
      connections: () => ({ active: groups.busy() ? 1 : 0, idle: groups.busy() ? 1 : 2 }),
      async close() {
        await groups.close();
        closeAll();
      },
    };
  } catch (error) {
    closeAll();
    throw error;
  }
}

/** Takes the directory for this process alone. */
function lockDirectory(dataDir: string): DatabaseSync {
  makeDirectory(dataDir);
  const file = join(dataDir, 'skillwright.lock');
  makePrivateFile(file);
  const lock = new DatabaseSync(file);
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;');
    return lock;
  } catch (cause) {
    lock.close();
    throw new Error(
      `The data directory ${dataDir} is in use by another Skillwright process: stop it, or set DATA_DIR to another directory.`,
      { cause },
    );
  }
}

function groupCommit(writer: DatabaseSync, handle: Handle) {
  const waiting: Waiting[] = [];
  let running = false;
  let scheduled = false;
  let closing = false;
  let onDrained: (() => void)[] = [];

  const schedule = () => {
    if (scheduled || running) return;
    scheduled = true;
    setImmediate(() => void flush());
  };

  async function flush(): Promise<void> {
    scheduled = false;
    running = true;
    const units = waiting.splice(0, unitsPerCommitMax);
    await commitTogether(writer, handle, units);
    running = false;
    if (waiting.length > 0) schedule();
    else {
      for (const resolve of onDrained) resolve();
      onDrained = [];
    }
  }

  return {
    busy: () => running,
    async write<T>(run: (tx: Transaction) => Promise<T>): Promise<T> {
      refuseNesting();
      if (closing) throw unavailable();
      if (waiting.length >= waitingMax) throw overloaded();
      return new Promise<T>((resolve, reject) => {
        waiting.push({ run, resolve, reject });
        schedule();
      });
    },
    /** Takes no further unit; resolves when the taken ones have ended. */
    close() {
      closing = true;
      return new Promise<void>((resolve) => {
        if (!running && waiting.length === 0) resolve();
        else onDrained.push(resolve);
      });
    },
  };
}

/** Units that were rolled back and run again together, each behind a savepoint. */
type Attempt = { readonly value: unknown } | { readonly error: unknown };

/**
 * One transaction for all units. When one of them throws, nothing is kept and all run again in a second
 * transaction, each behind a savepoint: those that throw are rolled back alone, and the others share one
 * commit. Savepoints from the start would cost every commit a copy of every page.
 */
async function commitTogether(
  writer: DatabaseSync,
  handle: Handle,
  units: readonly Waiting[],
): Promise<void> {
  const done: { unit: Waiting; value: unknown }[] = [];
  const hooks: (() => void)[] = [];
  const tx: Transaction = { ...handle, afterCommit: (hook) => void hooks.push(hook) };
  try {
    writer.exec('BEGIN IMMEDIATE');
    for (const unit of units) done.push({ unit, value: await asUnit(() => unit.run(tx)) });
    writer.exec('COMMIT');
  } catch (error) {
    rollBack(writer);
    if (units.length > 1) await commitApart(writer, handle, units);
    else units[0]?.reject(asPlatformError(error));
    return;
  }
  runAfterCommit(hooks);
  for (const { unit, value } of done) unit.resolve(value as never);
}

/** The same when a unit throws: it alone is rolled back, and the others share one commit. */
async function commitApart(
  writer: DatabaseSync,
  handle: Handle,
  units: readonly Waiting[],
): Promise<void> {
  const attempts: Attempt[] = [];
  const hooks: (() => void)[] = [];
  try {
    writer.exec('BEGIN IMMEDIATE');
    for (const unit of units) attempts.push(await attemptApart(writer, handle, unit, hooks));
    writer.exec('COMMIT');
  } catch {
    // The transaction itself could not go on, as with a full disk: a smaller one may.
    rollBack(writer);
    for (const unit of units) await commitTogether(writer, handle, [unit]);
    return;
  }
  runAfterCommit(hooks);
  for (const [i, unit] of units.entries()) {
    const attempt = attempts[i] as Attempt;
    if ('error' in attempt) unit.reject(asPlatformError(attempt.error));
    else unit.resolve(attempt.value as never);
  }
}

/** Runs a unit behind a savepoint; throws when the transaction itself cannot go on. */
async function attemptApart(
  writer: DatabaseSync,
  handle: Handle,
  unit: Waiting,
  hooks: (() => void)[],
): Promise<Attempt> {
  const own: (() => void)[] = [];
  const tx: Transaction = { ...handle, afterCommit: (hook) => void own.push(hook) };
  writer.exec('SAVEPOINT unit');
  try {
    const value = await asUnit(() => unit.run(tx));
    writer.exec('RELEASE unit');
    hooks.push(...own);
    return { value };
  } catch (error) {
    // SQLite ends the transaction itself where it cannot go on, as with a full disk.
    if (!writer.isTransaction) throw error;
    writer.exec('ROLLBACK TO unit; RELEASE unit');
    return { error };
  }
}

/** After an I/O error there may be nothing left to roll back, or no way to. */
function rollBack(writer: DatabaseSync): void {
  try {
    if (writer.isTransaction) writer.exec('ROLLBACK');
  } catch {
    // The next BEGIN fails with the cause, for the caller that writes then.
  }
}

interface Prepared {
  readonly statement: StatementSync;
  readonly bind: CompiledStatement['bind'];
}

/** Queries over one connection. Synchronous underneath: a promise here is always already settled. */
function handleOver(connection: DatabaseSync): Handle {
  const kysely = new Kysely<Tables>({ dialect: dialectOver(connection) });
  const prepared = new Map<object | string, Prepared>();

  const prepare = (text: string, bind: CompiledStatement['bind']): Prepared => {
    const statement = translated(() => connection.prepare(text));
    return { statement, bind };
  };
  const preparedFor = <P, R>(source: Statement<P, R>): Prepared => {
    let found = prepared.get(source);
    if (found === undefined) {
      const compiled = compile(kysely, source, 'sqlite');
      found = prepare(compiled.text, compiled.bind);
      prepared.set(source, found);
    }
    return found;
  };
  const insertFor = (table: string, columns: string[]): Prepared => {
    const key = `${table}:${columns.join()}`;
    let found = prepared.get(key);
    if (found === undefined) {
      const marks = columns.map(() => '?').join(', ');
      found = prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${marks})`, (row) =>
        columns.map((column) => (row as Record<string, unknown>)[column]),
      );
      prepared.set(key, found);
    }
    return found;
  };

  return {
    dialect: 'sqlite',
    kysely,
    async all<P, R>(source: Statement<P, R>, params: P) {
      const { statement, bind } = preparedFor(source);
      return translated(() => statement.all(...(bind(params) as SQLInputValue[])) as R[]);
    },
    async first<P, R>(source: Statement<P, R>, params: P) {
      const { statement, bind } = preparedFor(source);
      return translated(() => statement.get(...(bind(params) as SQLInputValue[])) as R | undefined);
    },
    async each<P>(source: Statement<P, unknown>, params: readonly P[]) {
      const { statement, bind } = preparedFor(source);
      translated(() => {
        for (const one of params) statement.run(...(bind(one) as SQLInputValue[]));
      });
    },
    async changes<P>(source: Statement<P, unknown>, params: readonly P[]) {
      const { statement, bind } = preparedFor(source);
      return translated(() =>
        params.map((one) => Number(statement.run(...(bind(one) as SQLInputValue[])).changes)),
      );
    },
    async insert<T extends keyof Tables>(table: T, rows: readonly Insertable<Tables[T]>[]) {
      const [row] = rows;
      if (row === undefined) return;
      const { statement, bind } = insertFor(table, Object.keys(row));
      translated(() => {
        for (const one of rows) statement.run(...(bind(one) as SQLInputValue[]));
      });
    },
  };
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

function translated<T>(query: () => T): T {
  try {
    return query();
  } catch (error) {
    throw asPlatformError(error);
  }
}

/** Primary result codes that say the database cannot be used now: busy, I/O, full, corrupt, cannot open. */
const unavailableCodes = new Set([5, 6, 8, 10, 11, 13, 14, 26]);

function asPlatformError(error: unknown): unknown {
  const { code, errcode } = error as { code?: string; errcode?: number };
  // Node's own word for a connection that is closed.
  if (code === 'ERR_INVALID_STATE') return unavailable(error);
  return errcode !== undefined && unavailableCodes.has(errcode & 0xff) ? unavailable(error) : error;
}

function unavailable(cause?: unknown): PlatformError {
  return new PlatformError('service_unavailable', 'The database cannot be used right now', {
    retryAfter: 5,
    cause,
  });
}

function overloaded(): PlatformError {
  return new PlatformError('service_unavailable', 'Too many writes are waiting', { retryAfter: 1 });
}
