/**
 * The clock that processes share: the database's. A lease ends, a retry falls due and a slot comes at
 * one moment for all of them, however far apart the clocks of their machines are.
 */
import { sql } from 'kysely';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from './database.ts';

/** The more questions, the narrower what their answers leave open. */
const tries = 3;

export interface DatabaseClock extends Clock {
  /** Asks the database what time it is. Fails when it cannot. */
  measure(): Promise<void>;
}

/** Measures once; from then on `measure` is to be called every few seconds, for clocks drift. */
export async function createDatabaseClock(database: Database): Promise<DatabaseClock> {
  /** What to add to this process's monotonic time; NaN before the first answer. */
  let offset = Number.NaN;

  async function measure(): Promise<void> {
    for (let i = 0; i < tries; i++) {
      const before = performance.now();
      const { rows } = await sql<{ ms: number }>`
        select extract(epoch from clock_timestamp()) * 1000 as ms`.execute(database.read.kysely);
      const after = performance.now();
      // It was that time at some moment between the two. Which one, a slow answer does not tell: so the
      // offset is only moved as far as it must be, and what a quick answer told is not made worse.
      const most = Number(rows[0]?.ms) - before;
      const least = Number(rows[0]?.ms) - after;
      offset = Number.isNaN(offset) ? (least + most) / 2 : Math.min(Math.max(offset, least), most);
    }
  }

  await measure();
  return {
    now: () => Math.floor(performance.now() + offset),
    monotonic: () => performance.now(),
    measure,
  };
}
