/**
 * The clock that processes share: the database's. A lease ends, a retry falls due and a slot comes at
 * one moment for all of them, however far apart the clocks of their machines are.
 */
import { sql } from 'kysely';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from './database.ts';

/** Looks at one measurement: the quickest answer tells most. */
const tries = 3;

export interface DatabaseClock extends Clock {
  /** Asks the database what time it is. Fails when it cannot. */
  measure(): Promise<void>;
}

/** Measures once; from then on `measure` is to be called every few seconds, for clocks drift. */
export async function createDatabaseClock(database: Database): Promise<DatabaseClock> {
  /** What to add to this process's monotonic time. */
  let offset = 0;

  async function measure(): Promise<void> {
    let best = { tookMs: Number.POSITIVE_INFINITY, offset: 0 };
    for (let i = 0; i < tries; i++) {
      const before = performance.now();
      const { rows } = await sql<{ ms: number }>`
        select extract(epoch from clock_timestamp()) * 1000 as ms`.execute(database.read.kysely);
      const after = performance.now();
      const tookMs = after - before;
      // The answer was true somewhere between the two; in the middle, most likely.
      if (tookMs < best.tookMs) {
        best = { tookMs, offset: Number(rows[0]?.ms) - (before + after) / 2 };
      }
    }
    offset = best.offset;
  }

  await measure();
  return {
    now: () => Math.floor(performance.now() + offset),
    monotonic: () => performance.now(),
    measure,
  };
}
