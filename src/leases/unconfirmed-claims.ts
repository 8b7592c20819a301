/**
 * Claims whose commit was not confirmed, because the connection to the database broke: each row may be claimed for this
 * process, which has not begun it. They are given back as soon as the database answers, and searched for as long as a
 * lease lasts, because the server may commit late. What a stop leaves ends with its lease.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import type { Clock } from '../kernel/clock.ts';
import { isUnavailable } from '../kernel/errors.ts';

const searchEveryMs = 500;
/** Rows that one search looks for. */
const searchedMax = 500;

export interface ClaimedRows<Row> {
  /** Those of the rows that are claimed for this process and not begun. */
  findUnbegun(ids: readonly string[]): Promise<Row[]>;
  /** Gives a row back, unless its claim has ended meanwhile. */
  giveBack(row: Row): Promise<unknown>;
  onError(error: unknown): void;
}

export class UnconfirmedClaims<Row extends { readonly id: string }> {
  readonly #rows: ClaimedRows<Row>;
  readonly #clock: Clock;
  readonly #leaseMs: number;
  /** By id, when the search for it ends, in monotonic milliseconds. */
  readonly #ids = new Map<string, number>();
  #isSearching = false;
  #isStopped = false;

  constructor(rows: ClaimedRows<Row>, clock: Clock, leaseMs: number) {
    this.#rows = rows;
    this.#clock = clock;
    this.#leaseMs = leaseMs;
  }

  add(ids: readonly string[]): void {
    const until = this.#clock.monotonic() + this.#leaseMs;
    for (const id of ids) this.#ids.set(id, until);
    if (!this.#isSearching && this.#ids.size > 0) void this.#search();
  }

  stop(): void {
    this.#isStopped = true;
  }

  async #search(): Promise<void> {
    this.#isSearching = true;
    while (this.#ids.size > 0 && !this.#isStopped) {
      try {
        await this.#giveBackSome();
      } catch (error) {
        if (!isUnavailable(error)) this.#rows.onError(error);
      }
      if (this.#ids.size > 0) await elapsed(searchEveryMs, undefined, { ref: false });
    }
    this.#isSearching = false;
  }

  async #giveBackSome(): Promise<void> {
    const now = this.#clock.monotonic();
    const searched = [...this.#ids.keys()].slice(0, searchedMax);
    const found = await this.#rows.findUnbegun(searched);
    await Promise.all(found.map((row) => this.#rows.giveBack(row)));
    for (const { id } of found) this.#ids.delete(id);
    for (const id of searched) {
      const until = this.#ids.get(id);
      if (until === undefined) continue;
      this.#ids.delete(id);
      // Behind the others, so that each is searched for in turn.
      if (until > now) this.#ids.set(id, until);
    }
  }
}
