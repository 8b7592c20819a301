/** One commit of SQLite for all units that wait together. A unit that throws is rolled back alone. */
import {
  asUnit,
  type Handle,
  overloaded,
  refuseNesting,
  runAfterCommit,
  type Transaction,
  unavailable,
} from './database.ts';
import { asPlatformError } from './sqlite-errors.ts';

/** Units that may wait for the writer; beyond that the service answers that it is overloaded. */
const waitingMax = 10_000;
/** Units in one commit. */
const unitsPerCommitMax = 512;

/** What is needed of the connection that writes. */
export interface Writer {
  readonly isTransaction: boolean;
  begin(): void;
  commit(): void;
  exec(sql: string): void;
}

interface Waiting {
  run(tx: Transaction): Promise<unknown>;
  resolve(value: never): void;
  reject(error: unknown): void;
}

/** Takes units and commits those that wait together, one group after another. */
export function groupCommit(writer: Writer, handle: Handle) {
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

function transactionOf(handle: Handle, hooks: (() => void)[]): Transaction {
  return { ...handle, afterCommit: (hook) => void hooks.push(hook), ifUncertain() {} };
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
  units: readonly Waiting[],
): Promise<void> {
  const done: { unit: Waiting; value: unknown }[] = [];
  const hooks: (() => void)[] = [];
  const tx = transactionOf(handle, hooks);
  try {
    writer.begin();
    for (const unit of units) done.push({ unit, value: await asUnit(() => unit.run(tx)) });
    writer.commit();
  } catch (error) {
    rollBack(writer);
    if (units.length > 1) await commitApart(writer, handle, units);
    else units[0]?.reject(asPlatformError(error));
    return;
  }
  runAfterCommit(hooks);
  for (const { unit, value } of done) unit.resolve(value as never);
}

/** Runs the units again when one throws: it alone is rolled back, and the others share one commit. */
async function commitApart(
  writer: Writer,
  handle: Handle,
  units: readonly Waiting[],
): Promise<void> {
  const attempts: Attempt[] = [];
  const hooks: (() => void)[] = [];
  try {
    writer.begin();
    for (const unit of units) attempts.push(await attemptApart(writer, handle, unit, hooks));
    writer.commit();
  } catch {
    // SQLite has ended the transaction, as with a full disk: a smaller one may succeed.
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
  writer: Writer,
  handle: Handle,
  unit: Waiting,
  hooks: (() => void)[],
): Promise<Attempt> {
  const own: (() => void)[] = [];
  const tx = transactionOf(handle, own);
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
function rollBack(writer: Writer): void {
  try {
    if (writer.isTransaction) writer.exec('ROLLBACK');
  } catch {
    // The next BEGIN fails with the cause, for the caller that writes then.
  }
}
