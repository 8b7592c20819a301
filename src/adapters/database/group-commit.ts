/** One commit of SQLite for all units that wait together. A unit that throws is rolled back alone. */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import {
  asUnit,
  type Handle,
  overloaded,
  refuseNesting,
  runHooks,
  type Transaction,
  unavailable,
} from './database.ts';
import { asPlatformError } from './sqlite-errors.ts';

/** Units that may wait for the writer; beyond that the service answers that it is overloaded. */
const waitingMax = 10_000;
/** Units in one commit. */
const unitsPerCommitMax = 512;

/** The connection that writes, with the statements of every transaction prepared. */
export class Writer {
  readonly connection: DatabaseSync;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;

  constructor(connection: DatabaseSync) {
    this.connection = connection;
    this.#begin = connection.prepare('BEGIN IMMEDIATE');
    this.#commit = connection.prepare('COMMIT');
  }

  begin(): void {
    this.#begin.run();
  }

  commit(): void {
    this.#commit.run();
  }
}

/** What a caller writes in one transaction. */
class Unit {
  readonly run: (tx: Transaction) => Promise<unknown>;
  readonly result = Promise.withResolvers<unknown>();
  constructor(run: (tx: Transaction) => Promise<unknown>) {
    this.run = run;
  }
}

/** Takes units and commits those that wait together, one group after another. */
export class GroupCommit {
  readonly #writer: Writer;
  readonly #handle: Handle;
  readonly #waiting: Unit[] = [];
  #isRunning = false;
  #isScheduled = false;
  #isClosing = false;
  readonly #drained = Promise.withResolvers<void>();

  constructor(writer: Writer, handle: Handle) {
    this.#writer = writer;
    this.#handle = handle;
  }

  /** Whether a commit is under way. */
  get isRunning(): boolean {
    return this.#isRunning;
  }

  async write<T>(run: (tx: Transaction) => Promise<T>): Promise<T> {
    refuseNesting();
    if (this.#isClosing) throw unavailable();
    if (this.#waiting.length >= waitingMax) throw overloaded();
    const unit = new Unit(run);
    this.#waiting.push(unit);
    this.#schedule();
    return unit.result.promise as Promise<T>;
  }

  /** Accepts no further unit; resolves when the accepted ones have ended. */
  close(): Promise<void> {
    this.#isClosing = true;
    if (!this.#isRunning && this.#waiting.length === 0) this.#drained.resolve();
    return this.#drained.promise;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isRunning) return;
    this.#isScheduled = true;
    setImmediate(() => void this.#flush());
  }

  async #flush(): Promise<void> {
    this.#isScheduled = false;
    this.#isRunning = true;
    const units = this.#waiting.splice(0, unitsPerCommitMax);
    await commitTogether(this.#writer, this.#handle, units);
    this.#isRunning = false;
    if (this.#waiting.length > 0) this.#schedule();
    else if (this.#isClosing) this.#drained.resolve();
  }
}

/** What runs after a commit, and what runs when it failed. */
interface Hooks {
  readonly committed: (() => void)[];
  readonly failed: (() => void)[];
}

const noHooks = (): Hooks => ({ committed: [], failed: [] });

function transactionOf(handle: Handle, { committed, failed }: Hooks): Transaction {
  return {
    ...handle,
    afterCommit: (hook) => void committed.push(hook),
    ifNotCommitted: (hook) => void failed.push(hook),
    ifUncertain() {},
  };
}

/** How a unit ended that was run again behind a savepoint. */
type Attempt = { readonly value: unknown } | { readonly error: unknown };

/**
 * One transaction for all units. When one of them throws, nothing is kept and all run again in a second
 * transaction, each behind a savepoint: those that throw are rolled back alone, and the others share one
 * commit. Savepoints from the start would cost every commit a copy of every page.
 */
async function commitTogether(
  writer: Writer,
  handle: Handle,
  units: readonly Unit[],
): Promise<void> {
  const done: { unit: Unit; value: unknown }[] = [];
  const hooks = noHooks();
  const tx = transactionOf(handle, hooks);
  try {
    writer.begin();
    for (const unit of units) done.push({ unit, value: await asUnit(() => unit.run(tx)) });
    writer.commit();
  } catch (error) {
    rollBack(writer);
    runHooks(hooks.failed);
    if (units.length > 1) await commitApart(writer, handle, units);
    else units[0]?.result.reject(asPlatformError(error));
    return;
  }
  runHooks(hooks.committed);
  for (const { unit, value } of done) unit.result.resolve(value);
}

/** Runs the units again when one throws: it alone is rolled back, and the others share one commit. */
async function commitApart(writer: Writer, handle: Handle, units: readonly Unit[]): Promise<void> {
  const attempts: Attempt[] = [];
  const hooks = noHooks();
  try {
    writer.begin();
    for (const unit of units) attempts.push(await attemptApart(writer, handle, unit, hooks));
    writer.commit();
  } catch {
    // SQLite has ended the transaction, as with a full disk: a smaller one may succeed.
    rollBack(writer);
    runHooks(hooks.failed);
    for (const unit of units) await commitTogether(writer, handle, [unit]);
    return;
  }
  runHooks(hooks.committed);
  for (const [i, unit] of units.entries()) {
    const attempt = attempts[i] as Attempt;
    if ('error' in attempt) unit.result.reject(asPlatformError(attempt.error));
    else unit.result.resolve(attempt.value);
  }
}

/** Runs a unit behind a savepoint; throws when the transaction itself cannot go on. */
async function attemptApart(
  writer: Writer,
  handle: Handle,
  unit: Unit,
  hooks: Hooks,
): Promise<Attempt> {
  const own = noHooks();
  const tx = transactionOf(handle, own);
  writer.connection.exec('SAVEPOINT unit');
  try {
    const value = await asUnit(() => unit.run(tx));
    writer.connection.exec('RELEASE unit');
    hooks.committed.push(...own.committed);
    hooks.failed.push(...own.failed);
    return { value };
  } catch (error) {
    runHooks(own.failed);
    // SQLite ends the transaction itself where it cannot go on, as with a full disk.
    if (!writer.connection.isTransaction) throw error;
    writer.connection.exec('ROLLBACK TO unit; RELEASE unit');
    return { error };
  }
}

/** After an I/O error there may be nothing left to roll back, or no way to. */
function rollBack(writer: Writer): void {
  try {
    if (writer.connection.isTransaction) writer.connection.exec('ROLLBACK');
  } catch {
    // The next BEGIN fails with the cause, for the caller that writes then.
  }
}
