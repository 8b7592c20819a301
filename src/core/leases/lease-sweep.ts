/**
 * The sweep over claimed rows, such as jobs and deliveries. It ends the claims whose lease has expired
 * because their process died, and corrects waits and leases after the clock was set back. It never ends a
 * claim while its worker could not renew the lease: right after a stall the worker gets time to do so.
 */
import type { Database, Handle, Transaction } from '../../adapters/database/database.ts';
import type { Clock } from '../../kernel/clock.ts';
import { createSetBackWatch } from '../../kernel/set-back.ts';
import type { Context } from '../context/context.ts';
import { StallDetector } from './stall-detector.ts';

/** Expired claims that are ended together. */
const expiredMax = 500;

export abstract class LeaseSweep<Row> {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #stalls: StallDetector;
  readonly #wasSetBack: () => boolean;
  /** Whether the clock was set back and the rows were not yet brought forward. */
  #mustBringForward = false;

  /** `graceMs`: how long after a stall workers may still renew or settle leases that have expired meanwhile. */
  constructor({ database, clock }: Context, graceMs = 0) {
    this.#database = database;
    this.#clock = clock;
    this.#stalls = new StallDetector(clock, graceMs);
    this.#wasSetBack = createSetBackWatch(clock);
  }

  /** The longest expired first. */
  protected abstract findExpired(db: Handle, leasedUntil: number, limit: number): Promise<Row[]>;
  /** Settles a claim as lost; null when it has ended meanwhile. */
  protected abstract settleLost(row: Row): Promise<unknown>;
  /** Shortens waits and leases that lie too far ahead of `now`. */
  protected abstract bringForward(tx: Transaction, now: number): Promise<void>;
  /** Called with claims that were settled as lost, at least one. */
  protected abstract reportLost(rows: readonly Row[]): void;
  protected abstract reportError(error: unknown, row: Row): void;
  /** Renews the leases of this process, before any is ended. */
  protected async renewOwn(): Promise<void> {}
  /** Further work of a pass. Each part runs also when another fails. */
  protected abstract further(): readonly (() => Promise<void>)[];

  /** Makes one pass. */
  async sweep(): Promise<void> {
    await this.#bringForward();
    const now = this.#clock.now();
    const isAnyExpired = (await this.findExpired(this.#database.read, now, 1)).length > 0;
    // Only after a read of the database has succeeded: a gap between two such passes is a stall.
    const mayEnd = !this.#stalls.isInGrace();
    await runAll([
      async () => {
        if (!mayEnd || !isAnyExpired) return;
        // After the machine was suspended, the leases of this process look expired.
        await this.renewOwn();
        await this.#endExpired(this.#clock.now());
      },
      ...this.further(),
    ]);
  }

  /**
   * Ends every claim at once, also with a valid lease: for the start of an embedded platform, when no
   * process can hold one. How many it has ended.
   */
  endOrphans(): Promise<number> {
    return this.#endExpired(Number.MAX_SAFE_INTEGER);
  }

  /** Without this, rows would wait as much longer as the clock was set back. */
  async #bringForward(): Promise<void> {
    this.#mustBringForward = this.#wasSetBack() || this.#mustBringForward;
    if (!this.#mustBringForward) return;
    await this.#database.write((tx) => this.bringForward(tx, this.#clock.now()));
    this.#mustBringForward = false;
  }

  /** Ends the claims whose lease had expired at `leasedUntil`; how many. */
  async #endExpired(leasedUntil: number): Promise<number> {
    let ended = 0;
    for (;;) {
      const expired = await this.findExpired(this.#database.read, leasedUntil, expiredMax);
      const settled = await Promise.allSettled(expired.map((row) => this.settleLost(row)));
      const lost = expired.filter((row, i) => {
        const one = settled[i];
        // A claim that cannot be ended must not keep the others from ending, or the process from starting.
        if (one?.status === 'rejected') this.reportError(one.reason, row);
        return one?.status === 'fulfilled' && one.value !== null;
      });
      if (lost.length > 0) this.reportLost(lost);
      ended += lost.length;
      if (lost.length < expiredMax) return ended;
    }
  }
}

/** Runs one part after the other, also when one fails; then throws the first error. */
async function runAll(parts: readonly (() => Promise<void>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const part of parts) {
    try {
      await part();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
