/** Waiting jobs: woken when one of their waits has ended. */
import { type SqlBool, sql } from 'kysely';
import type { Transaction } from '../database/database.ts';
import { idInLocked, idsParam } from '../database/ids-in.ts';
import { statement } from '../database/statement.ts';

const wake = statement<{ ids: string; now: number }>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({ due_at: p('now') })
    .where(
      idInLocked(
        dialect,
        p('ids'),
        'jobs',
        sql<SqlBool>`status = 'waiting' and due_at > ${p('now')}`,
      ),
    )
    .returning(['id', 'epoch', 'trigger_type']),
);

/** Makes the waiting ones of the jobs due; returns those that were not due yet. */
export function wakeJobs(tx: Transaction, ids: readonly string[], now: number) {
  return tx.all(wake, { ids: idsParam(ids), now });
}
