/**
 * The port of the database. It promises:
 * `write` resolves only after its commit is durable; what a unit did is visible to every later
 * read; a unit that throws leaves nothing behind and harms no other. It never nests transactions.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Insertable, Kysely } from 'kysely';
import { PlatformError } from '../../kernel/errors.ts';
import type { Statement } from './statement.ts';
import type { Tables } from './tables.ts';

/** Which database it is, for the few places where the two must differ. */
export type Dialect = 'sqlite' | 'postgres';

/** Something that runs queries: outside a transaction, or inside one. */
export interface Handle {
  readonly dialect: Dialect;
  /** For everything that is not on the hot path. */
  readonly kysely: Kysely<Tables>;
  /** Runs a statement; all its rows. */
  all<P, R>(statement: Statement<P, R>, params: P): Promise<R[]>;
  /** Runs a statement; its first row. */
  first<P, R>(statement: Statement<P, R>, params: P): Promise<R | undefined>;
  /** Runs one statement for each of `params`, in order; how many rows each of them changed. */
  changes<P>(statement: Statement<P, unknown>, params: readonly P[]): Promise<number[]>;
  /** Like `changes`, without row counts. */
  each<P>(statement: Statement<P, unknown>, params: readonly P[]): Promise<void>;
  /** Inserts rows that all have the same columns; a column left out takes its default. */
  insert<T extends keyof Tables>(table: T, rows: readonly Insertable<Tables[T]>[]): Promise<void>;
}

/**
 * On PostgreSQL, `each` and `insert` have no answer and cause no round trip: they are sent, in their
 * order, with the next statement that has one, or with the commit. What goes wrong with them is
 * thrown there; it fails the transaction like anything else.
 */
export interface Transaction extends Handle {
  /** Runs after the commit and before the write's promise resolves; must not throw. */
  afterCommit(hook: () => void): void;
  /**
   * Runs when the answer to the COMMIT was lost, so that the unit may be committed or not: before the write rejects
   * with `service_unavailable`. Must not throw. SQLite has no such case, because it commits in this process.
   */
  ifUncertain(hook: () => void): void;
  /** Runs when the commit failed, before the unit is run again or its write rejects. Must not throw. */
  ifNotCommitted(hook: () => void): void;
}

export interface Database {
  /** Reads committed rows. */
  readonly read: Handle;
  /**
   * Runs `unit` in a transaction; it may be run again after a rollback, so all that it does beside
   * its queries belongs in `afterCommit`. On SQLite, units that arrive together share one commit,
   * and a unit may only await its own queries: anything else would hold up all the others.
   * Rejects with `service_unavailable` when the database cannot be used right now.
   */
  write<T>(unit: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Rejects unless a trivial query succeeds. */
  ping(): Promise<void>;
  /**
   * Removes what earlier transactions have deleted from SQLite's log: it holds pages as they were. PostgreSQL does so by
   * itself, with its own checkpoints. False where the log is in use, such as by a backup: the caller repeats it later.
   */
  emptyLog(): Promise<boolean>;
  /** Connections in use and at rest. */
  connections(): { active: number; idle: number };
  /** Waits for the writes under way, then closes every connection. */
  close(): Promise<void>;
}

/**
 * Runs the hooks of a commit, or of one that failed. A hook that throws is a bug; what was decided stands, so the error is
 * reported to the process and not to the caller that wrote.
 */
export function runHooks(hooks: readonly (() => void)[]): void {
  for (const hook of hooks) {
    try {
      hook();
    } catch (error) {
      process.emitWarning(error as Error);
    }
  }
}

const insideWrite = new AsyncLocalStorage<boolean>();

/** Runs a unit so that a write begun inside it is refused instead of waiting for itself. */
export function asUnit<T>(run: () => Promise<T>): Promise<T> {
  return insideWrite.run(true, run);
}

/** Throws where a transaction is already open around the caller. */
export function refuseNesting(): void {
  if (insideWrite.getStore()) {
    throw new Error('A transaction is open already: pass its handle on instead of writing anew.');
  }
}

export function unavailable(cause?: unknown): PlatformError {
  return new PlatformError('service_unavailable', 'The database cannot be used right now', {
    retryAfter: 5,
    cause,
  });
}

export function overloaded(): PlatformError {
  return new PlatformError('service_unavailable', 'Too many writes are waiting', { retryAfter: 1 });
}
