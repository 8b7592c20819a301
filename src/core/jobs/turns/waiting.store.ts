/** Waiting jobs: woken when one of their waits has ended. */
import { type SqlBool, sql } from 'kysely';
import type { Transaction } from '../../../adapters/database/database.ts';
import { leastOf } from '../../../adapters/database/extremes.ts';
import { idInLocked } from '../../../adapters/database/ids-in.ts';
import { listOf, statement } from '../../../adapters/database/statement.ts';
import { hintedColumns } from '../jobs.store.ts';

/** Later than every moment of which a clock may be set back. */
const wokenOffsetMs = 2 ** 42;

/**
 * The `due_at` of a waiting job that is due at once. It is negative, because the job stays due when the
 * clock is set back, and in the order of the moments, so that the job that was woken first comes first.
 */
export const wokenAt = (now: number): number => now - wokenOffsetMs;

/** Since when a job with this `due_at` is due. */
export const dueSince = (dueAt: number): number => (dueAt < 0 ? dueAt + wokenOffsetMs : dueAt);

const wake = statement<{ ids: readonly string[]; woken_at: number }>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({ due_at: sql<number>`${leastOf(dialect)}(due_at, ${p('woken_at')})` })
    .where(idInLocked(dialect, listOf(p, 'ids'), 'jobs', sql<SqlBool>`status = 'waiting'`))
    .returning([...hintedColumns, 'epoch']),
);

/** Makes the waiting ones of the jobs due, and returns them. */
export function wakeJobs(tx: Transaction, ids: readonly string[], now: number) {
  return tx.all(wake, { ids, woken_at: wokenAt(now) });
}
