/**
 * Group work above the database: items that arrive while a write is under way go into the next one
 * together, so that one statement and one commit serve many. Order of arrival is kept. An item is
 * answered only after its commit; a batch that fails is tried again by halves, down to the item that
 * makes it fail, so that item harms no neighbour.
 */
import { isUnavailable } from '../../kernel/errors.ts';
import { type Database, overloaded, refuseNesting, type Transaction } from './database.ts';

/** Handles all items in one transaction; the result's i-th entry answers the i-th item. */
export type BatchRunner<I, O> = (tx: Transaction, items: readonly I[]) => Promise<O[]>;

const itemsPerWriteMax = 256;
/** Beyond this many waiting items the service answers that it is overloaded. */
const waitingMax = 10_000;
/**
 * Callers whose items were written together usually add their next items together. If the next write began with the
 * first of them, the others would wait for it, and from then on two half-full writes would take turns. So on PostgreSQL,
 * where a write costs about as much as twenty of its items, the next write waits this long, or until as many items wait
 * as the last write had and left waiting. With fewer items than `gatheredMin` it begins at once.
 */
const gatherMs = 2;
const gatheredMin = 8;

interface Waiting<I, O> {
  readonly item: I;
  readonly result: PromiseWithResolvers<O>;
}

/**
 * Writes items of many callers together. `add` answers when the write that held the item is durable. `partOfWrite`
 * says how large a part of one write an item may take up: a write blocks the process on SQLite, so
 * those of one write come to 1 at most, unless a single one is more.
 */
export class Batch<I, O> {
  readonly #database: Database;
  readonly #run: BatchRunner<I, O>;
  readonly #partOfWrite: (item: I) => number;
  readonly #waiting: Waiting<I, O>[] = [];
  #isWriting = false;
  /** The write that gathers items: how many it waits for, and what begins it. */
  #gathering: { readonly count: number; readonly begun: PromiseWithResolvers<void> } | undefined;

  constructor(
    database: Database,
    run: BatchRunner<I, O>,
    partOfWrite: (item: I) => number = () => 0,
  ) {
    this.#database = database;
    this.#run = run;
    this.#partOfWrite = partOfWrite;
  }

  add(item: I): Promise<O> {
    // It would wait for the next write, and that one for the write around the caller.
    refuseNesting();
    if (this.#waiting.length >= waitingMax) return Promise.reject(overloaded());
    const result = Promise.withResolvers<O>();
    this.#waiting.push({ item, result });
    if (!this.#isWriting) void this.#writeAll();
    else if (this.#waiting.length === this.#gathering?.count) this.#gathering.begun.resolve();
    return result.promise;
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      const written = await this.#writeSome();
      await this.#gather(written);
    }
    this.#isWriting = false;
  }

  /** Waits for the items that will probably come, after a write of `written` items. */
  async #gather(written: number): Promise<void> {
    const waiting = this.#waiting.length;
    const count = Math.min(written + waiting, itemsPerWriteMax);
    const isFull = waiting >= count || this.#fitting() < waiting;
    if (isFull || count < gatheredMin || this.#database.read.dialect === 'sqlite') return;
    const begun = Promise.withResolvers<void>();
    const timer = setTimeout(begun.resolve, gatherMs);
    this.#gathering = { count, begun };
    await begun.promise;
    clearTimeout(timer);
    this.#gathering = undefined;
  }

  /**
   * Writes some of the items that wait, or those that are given. Where the write fails, each half is written
   * alone: one item that fails costs some ten writes and not one for each neighbour. How many were written.
   */
  async #writeSome(given: readonly Waiting<I, O>[] = []): Promise<number> {
    const waiting = this.#waiting;
    let taken = given;
    try {
      const results = await this.#database.write((tx) => {
        // Taken when the transaction runs, not when it is requested: calls that arrive until then join it.
        // The database may run a unit a second time; it is then about the same items.
        if (taken.length === 0) taken = waiting.splice(0, this.#fitting());
        return this.#run(
          tx,
          taken.map((one) => one.item),
        );
      });
      taken.forEach((one, i) => {
        one.result.resolve(results[i] as O);
      });
      return taken.length;
    } catch (error) {
      if (taken.length === 0) taken = waiting.splice(0);
      if (taken.length <= 1 || isUnavailable(error)) {
        for (const one of taken) one.result.reject(error);
        return 0;
      }
      const middle = taken.length >> 1;
      const first = await this.#writeSome(taken.slice(0, middle));
      return first + (await this.#writeSome(taken.slice(middle)));
    }
  }

  /** How many of those that wait go into one write. */
  #fitting(): number {
    let parts = 0;
    const first = this.#waiting.slice(0, itemsPerWriteMax);
    const end = first.findIndex(({ item }, i) => {
      parts += this.#partOfWrite(item);
      return i > 0 && parts > 1;
    });
    return end === -1 ? first.length : end;
  }
}
