/** Waiting jobs: woken when one of their waits has ended. */
import { type SqlBool, sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import { leastOf } from '../database/extremes.ts';
import { idInLocked, idsParam } from '../database/ids-in.ts';
import { statement } from '../database/statement.ts';

const wake = statement<{ ids: string; now: number }>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({ due_at: sql<number>`${leastOf(dialect)}(due_at, ${p('now')})` })
    .where(idInLocked(dialect, p('ids'), 'jobs', sql<SqlBool>`status = 'waiting'`))
    .returning(['id', 'epoch', 'trigger_type']),
);

/** Makes the waiting ones of the jobs due, and returns them. */
export function wakeJobs(tx: Transaction, ids: readonly string[], now: number) {
  return tx.all(wake, { ids: idsParam(ids), now });
}
