/** Recomputes the next slots of all scheduled jobs at the start, as rules of time zones change, and after the clock was set back. */
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Context } from '../../core/context/context.ts';
import { findAhead, planScheduledJobs } from './schedules.store.ts';
import { nextSlot, parseStoredTimetable } from './timetable.ts';

/** Scheduled jobs planned in one transaction. */
const batchMax = 500;

/** Recomputes the next slot of every scheduled job that is not due. Recorded slots stay as they are. */
export async function planAnew({ database, clock }: Context): Promise<void> {
  let after = '';
  for (;;) {
    const now = clock.now();
    const ahead = await findAhead(database.read, { now, after, limit: batchMax });
    const moved = ahead.flatMap(({ id, updated_at, next_run_at: from, ...columns }) => {
      const timetable = parseStoredTimetable(columns);
      const to = timetable === null ? from : nextSlot(timetable, now);
      return to === from ? [] : [{ id, updated_at, from, to }];
    });
    if (moved.length > 0) await database.write((tx) => planScheduledJobs(tx, moved));
    const last = ahead.at(-1);
    if (last === undefined) return;
    after = last.id;
    await yieldToEventLoop();
  }
}
