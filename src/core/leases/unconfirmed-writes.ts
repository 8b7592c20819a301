/**
 * Writes whose commit was not confirmed, because the connection to the database broke: this process does not know whether
 * they are on record. It searches for them as soon as the database answers, and for as long as a lease lasts, because the
 * server may commit late, and once more at a stop. What that leaves is settled by the sweep.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import type { Clock } from '../../kernel/clock.ts';
import { isUnavailable } from '../../kernel/errors.ts';

const searchEveryMs = 500;
/** Writes that one search looks for. */
const searchedMax = 500;

interface Identified {
  readonly id: string;
}

export interface WrittenRows<Write, Row> {
  /** Those of the writes that are on record. It may undo them in the transaction in which it finds them. */
  takeCommitted(writes: readonly Write[]): Promise<Row[]>;
  /** Does what should follow from a write that is on record. */
  settle(row: Row): unknown;
  onError(error: unknown): void;
}

interface Searched<Write> {
  readonly write: Write;
  /** When the search for it ends, in monotonic milliseconds. */
  readonly until: number;
}

/** By the id of the row: of two writes to one row the later one counts. */
export class UnconfirmedWrites<Write extends Identified, Row extends Identified = Write> {
  readonly #rows: WrittenRows<Write, Row>;
  readonly #clock: Clock;
  readonly #searchMs: number;
  readonly #writes = new Map<string, Searched<Write>>();
  #isSearching = false;
  #isStopped = false;

  constructor(rows: WrittenRows<Write, Row>, clock: Clock, searchMs: number) {
    this.#rows = rows;
    this.#clock = clock;
    this.#searchMs = searchMs;
  }

  add(writes: readonly Write[]): void {
    const until = this.#clock.monotonic() + this.#searchMs;
    for (const write of writes) this.#writes.set(write.id, { write, until });
    if (!this.#isSearching && this.#writes.size > 0) void this.#search();
  }

  /** Ends the search for writes of these rows: another transaction knows that they are not on record. */
  forget(ids: readonly string[]): void {
    if (this.#writes.size === 0) return;
    for (const id of ids) this.#writes.delete(id);
  }

  /** Searches once more, then no longer. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#writes.size > 0) await this.#trySettleSome();
  }

  async #search(): Promise<void> {
    this.#isSearching = true;
    while (this.#writes.size > 0 && !this.#isStopped) {
      await this.#trySettleSome();
      if (this.#writes.size > 0) await elapsed(searchEveryMs, undefined, { ref: false });
    }
    this.#isSearching = false;
  }

  async #trySettleSome(): Promise<void> {
    try {
      await this.#settleSome();
    } catch (error) {
      if (!isUnavailable(error)) this.#rows.onError(error);
    }
  }

  async #settleSome(): Promise<void> {
    const now = this.#clock.monotonic();
    const searched = new Map([...this.#writes].slice(0, searchedMax));
    const rows = await this.#rows.takeCommitted([...searched.values()].map(({ write }) => write));
    const isSearched = (id: string) => this.#writes.get(id) === searched.get(id);
    // Not those that were forgotten, or written again, meanwhile.
    const found = rows.filter(({ id }) => isSearched(id));
    await Promise.all(found.map((row) => this.#rows.settle(row)));
    for (const { id } of found) if (isSearched(id)) this.#writes.delete(id);
    for (const [id, one] of searched) {
      if (!isSearched(id) || !this.#writes.delete(id)) continue;
      // Behind the others, so that each is searched for in turn.
      if (one.until > now) this.#writes.set(id, one);
    }
  }
}
