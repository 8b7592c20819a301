/**
 * The clock that processes share: the database's. A lease ends, a retry falls due and a slot comes at
 * one moment for all of them, however far apart the clocks of their machines are.
 */
import { sql } from 'kysely';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from './database.ts';

/** Queries of one measurement: each narrows the range in which the time of the database lies. */
const tries = 3;

/** A clock without a time until `measure` has succeeded once; from then on it is called every few seconds, for clocks drift. */
export class DatabaseClock implements Clock {
  readonly #database: Database;
  /** The difference to this process's monotonic time. */
  #offset = Number.NaN;

  constructor(database: Database) {
    this.#database = database;
  }

  now(): number {
    return Math.floor(performance.now() + this.#offset);
  }

  monotonic(): number {
    return performance.now();
  }

  /** Reads the time of the database. Fails when it cannot. */
  async measure(): Promise<void> {
    for (let i = 0; i < tries; i++) {
      const before = performance.now();
      const { rows } = await sql<{ ms: number }>`
        select extract(epoch from clock_timestamp()) * 1000 as ms`.execute(
        this.#database.read.kysely,
      );
      const after = performance.now();
      // The time was read at some moment between the two, so the offset lies between `least` and `most`. It moves no
      // further than it must: a slow query leaves a wide range, which must not undo the narrow one of a fast query.
      const most = Number(rows[0]?.ms) - before;
      const least = Number(rows[0]?.ms) - after;
      this.#offset = Number.isNaN(this.#offset)
        ? (least + most) / 2
        : Math.min(Math.max(this.#offset, least), most);
    }
  }
}
