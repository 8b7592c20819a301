/**
 * The vector index of PostgreSQL with the extension pgvector, for agents with so many memories that comparing all codes
 * is slow. It gives candidates, approximately the nearest; they are then compared exactly like those of the codes.
 */
import type { Database } from '../../adapters/database/database.ts';
import type { Clock } from '../../kernel/clock.ts';
import { isUnavailable } from '../../kernel/errors.ts';
import type { Logger } from '../../kernel/log.ts';
import type { Context } from '../context/context.ts';
import { vectorOf } from './codes.ts';
import type { EmbeddingModel } from './embedding-models.store.ts';
import {
  canIndex,
  createIndex,
  createSearch,
  dropSearch,
  findLastNumber,
  hasIndex,
  indexVectors,
  isIndexed,
  listUnindexed,
  nearestIndexed,
} from './pgvector.store.ts';
import type { SeenOwners } from './vectors.store.ts';

/** Up to so many memories of the owners, all codes are compared instead. Tests set another number. */
const codesMax = 50_000;
/** Milliseconds between two checks of the extension and the index. */
const checkIntervalMs = 60_000;
/** Vectors added in one transaction, and transactions in one call. */
const addedMax = 100;
const additionsMax = 10;
/** Before the number of the first vector. */
const beginning = -1;

export class VectorIndex {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly #exactMax: number;
  /** Models whose index is complete, as far as this process knows. */
  readonly #complete = new Set<number>();
  /** By model: the number of a vector up to which all are indexed; a check begins after it. */
  readonly #filledTo = new Map<number, number>();
  /**
   * By model with a complete index: the number of the newest vector at the last check, and the monotonic time of it.
   * `filledTo` advances to it one check later, because other transactions may still commit lower numbers.
   */
  readonly #checkedAt = new Map<number, { readonly n: number; readonly at: number }>();
  /** The monotonic times of the next check for a search function and of the next fill, in milliseconds. */
  #searchAt = 0;
  #fillAt = 0;
  #hasFailed = false;

  constructor({ database, clock, log }: Context, exactMax = codesMax) {
    this.database = database;
    this.clock = clock;
    this.log = log;
    this.#exactMax = exactMax;
  }

  /**
   * Creates the index of a model and adds some of the missing vectors, if `hold` grants this process the lease. Checks
   * complete indexes as well: the extension may have been dropped, or a process may have died before it added vectors.
   */
  async fill({ id, dimensions }: EmbeddingModel, hold: () => Promise<boolean>): Promise<void> {
    const { database, clock } = this;
    if (database.read.dialect !== 'postgres' || dimensions === null) return;
    const now = clock.monotonic();
    if (now < this.#fillAt) return;
    this.#fillAt = now + checkIntervalMs;
    try {
      await this.#fillSome({ id, dimensions }, hold);
      this.#hasFailed = false;
    } catch (error) {
      if (isUnavailable(error)) throw error;
      this.#logFailure(error);
      // Searches use the codes until the index is complete again.
      await database.write((tx) => dropSearch(tx, id));
    }
  }

  async #fillSome(
    { id, dimensions }: { id: number; dimensions: number },
    hold: () => Promise<boolean>,
  ): Promise<void> {
    const { database } = this;
    const filledTo = this.#filledTo;
    const checkedAt = this.#checkedAt;
    const { read } = database;
    if (!(await canIndex(read, dimensions)) || !(await hold())) return;
    const isMade = await hasIndex(read, id);
    const isWhole = isMade && (await isIndexed(read, id));
    // Another process may have rebuilt the index since this one filled it.
    if (!isMade || (!isWhole && checkedAt.has(id))) {
      filledTo.delete(id);
      checkedAt.delete(id);
    }
    if (!isMade) {
      await database.write((tx) => createIndex(tx, id, dimensions));
    }
    const recordedTo = await findLastNumber(read, beginning);
    for (let step = 0; step < additionsMax; step++) {
      const after = filledTo.get(id) ?? beginning;
      const rows = await listUnindexed(read, { model: id, after, max: addedMax });
      await this.#index(rows);
      const last = rows.at(-1);
      if (last !== undefined) filledTo.set(id, Number(last.n));
      if (rows.length === addedMax) continue;
      if (!isWhole) await database.write((tx) => createSearch(tx, id, dimensions));
      this.#recordCheck(id, recordedTo);
      return;
    }
    // More is left: let the next call continue at once.
    this.#fillAt = 0;
  }

  /** Records that a check has indexed all vectors up to `n`. */
  #recordCheck(id: number, n: number): void {
    const filledTo = this.#filledTo;
    const checkedAt = this.#checkedAt;
    const at = this.clock.monotonic();
    const before = checkedAt.get(id);
    // Too soon after the last check: transactions of that time may still be open.
    if (before !== undefined && at - before.at < checkIntervalMs) return;
    if (before !== undefined) filledTo.set(id, Math.max(before.n, filledTo.get(id) ?? beginning));
    checkedAt.set(id, { n, at });
  }

  async #index(rows: Awaited<ReturnType<typeof listUnindexed>>): Promise<void> {
    const { database } = this;
    if (rows.length === 0) return;
    const vectors = rows.map(({ seq, vector }) => ({ seq, vector: vectorOf(vector) }));
    await database.write((tx) => indexVectors(tx, vectors));
  }

  /** Adds recorded vectors of a model, if it has an index. Never throws: `fill` adds what failed here. */
  async add(model: number, rows: Parameters<typeof indexVectors>[1]): Promise<void> {
    const { database } = this;
    try {
      if (rows.length === 0 || !(await hasIndex(database.read, model))) return;
      await database.write((tx) => indexVectors(tx, rows));
    } catch (error) {
      this.#logFailure(error);
      this.#fillAt = 0;
    }
  }

  #logFailure(error: unknown): void {
    if (!this.#hasFailed) {
      this.log.warn({ err: error }, 'vectors cannot be indexed: searches go without');
    }
    this.#hasFailed = true;
  }

  /** The nearest memories of owners with many memories; null if the search has to use the codes. */
  async nearest(
    seen: SeenOwners,
    wanted: { model: number; vector: Float32Array; most: number; count: number },
  ): Promise<readonly number[] | null> {
    const { read } = this.database;
    if (read.dialect !== 'postgres' || wanted.count <= this.#exactMax) return null;
    if (!this.#complete.has(wanted.model)) {
      const now = this.clock.monotonic();
      if (now < this.#searchAt) return null;
      this.#searchAt = now + checkIntervalMs;
      if (!(await isIndexed(read, wanted.model))) return null;
      this.#complete.add(wanted.model);
    }
    try {
      const found = await nearestIndexed(read, seen, wanted);
      // The index may give too few when most of its entries belong to other owners.
      return found.length === wanted.most ? found : null;
    } catch {
      // For example, the extension was removed.
      this.#complete.delete(wanted.model);
      return null;
    }
  }
}
