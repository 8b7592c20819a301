/**
 * Watches whether a database takes writes: a full disk or a standby refuses each, and answers every read. After a write
 * that was refused for such a reason the database counts as not writable, until a write of its own succeeds, which
 * `check` tries every few seconds.
 */
import { randomBytes } from 'node:crypto';
import type { Database, Transaction } from './database.ts';
import { isRefusedWrite as isRefusedByPostgres } from './postgres-errors.ts';
import { isRefusedWrite as isRefusedBySqlite } from './sqlite-errors.ts';

/** As much as a request may write: a smaller write can succeed on a disk that is full for requests. */
const contentBytes = 64 * 1024;
const only = 1;

export class WatchedWrites {
  /** The watched database, for everything that writes. */
  readonly database: Database;
  readonly #given: Database;
  readonly #tryEveryMs: number;
  /** Why the last write was refused; null while the database is writable. */
  #refusal: string | null = null;
  #triedAt: number | null = null;

  constructor(given: Database, tryEveryMs = 3_000) {
    this.#given = given;
    this.#tryEveryMs = tryEveryMs;
    this.database = {
      read: given.read,
      write: (unit) => this.#write(unit),
      ping: () => given.ping(),
      emptyLog: () => given.emptyLog(),
      connections: () => given.connections(),
      close: () => given.close(),
    };
  }

  isWritable(): boolean {
    return this.#refusal === null;
  }

  /** Rejects, with the reason, while the database is not writable. */
  async check(): Promise<void> {
    if (this.#refusal === null) return;
    const now = performance.now();
    // The first check only reports the refusal, so that it is seen however soon the database recovers.
    const isDue = this.#triedAt !== null && now - this.#triedAt >= this.#tryEveryMs;
    if (this.#triedAt === null || isDue) this.#triedAt = now;
    if (isDue) await this.#try();
    if (this.#refusal !== null) throw new Error(this.#refusal);
  }

  #write<T>(unit: (tx: Transaction) => Promise<T>): Promise<T> {
    const written = this.#given.write(unit);
    written.then(undefined, (error: unknown) => this.#note(error));
    return written;
  }

  #note(error: unknown): void {
    const { cause } = (error ?? {}) as { cause?: unknown };
    if (!isRefusedBySqlite(cause) && !isRefusedByPostgres(cause)) return;
    this.#refusal = `the database refuses writes: ${(cause as Error).message}`;
  }

  async #try(): Promise<void> {
    const row = { id: only, content: randomBytes(contentBytes / 2).toString('hex') };
    try {
      await this.#given.write((tx) =>
        tx.kysely
          .insertInto('write_probes')
          .values(row)
          .onConflict((conflict) => conflict.column('id').doUpdateSet({ content: row.content }))
          .execute(),
      );
      await this.#given.write((tx) => tx.kysely.deleteFrom('write_probes').execute());
    } catch (error) {
      this.#note(error);
      return;
    }
    this.#refusal = null;
    this.#triedAt = null;
  }
}
