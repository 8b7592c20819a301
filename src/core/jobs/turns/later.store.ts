/** The queries on jobs that begin later, or expire before they begin. */
import { sql } from 'kysely';
import type { Transaction } from '../../../adapters/database/database.ts';
import { idIn } from '../../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf, statement } from '../../../adapters/database/statement.ts';
import { behindPrefix } from '../in-conversation/conversation-jobs.store.ts';
import { hintedColumns } from '../jobs.store.ts';

/** The terms of the index of jobs that may expire. */
const mayExpire = sql<boolean>`status = 'queued' and started_at is null and expires_at is not null`;

/** Jobs that had not begun when they expired, the longest expired first. */
export const findOverdueJobs = allRows<{ now: number; limit: number }>()((db, p) =>
  db
    .selectFrom('jobs')
    .select('id')
    .where(mayExpire)
    .where('expires_at', '<=', p('now'))
    .orderBy('expires_at')
    .limit(p('limit')),
);

/** Those of the jobs that have expired and not begun, in a transaction that has locked them. */
export const keepOverdue = allRows<{ ids: readonly string[]; now: number }, Transaction>()(
  (db, p, dialect) =>
    db
      .selectFrom('jobs')
      .select('id')
      .where(idIn(dialect, listOf(p, 'ids')))
      .where(mayExpire)
      .where('expires_at', '<=', p('now')),
);

/** Jobs that no worker has claimed and that fall due in a time: after `from`, until `to`. */
export const findComingJobs = allRows<{ from: number; to: number; limit: number }>()((db, p) =>
  db
    .selectFrom('jobs')
    .select([...hintedColumns, 'run_at'])
    .where('status', '=', sql.lit('queued'))
    .where('due_at', '>', p('from'))
    .where('due_at', '<=', p('to'))
    .where('epoch', '=', sql.lit(0))
    .orderBy('due_at')
    .limit(p('limit')),
);

const forget = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({ started_at: null })
    .where(idIn(dialect, listOf(p, 'ids')))
    .where('status', '=', sql.lit('queued'))
    .where('has_begun', '=', sql.lit(0)),
);

/** Records that the jobs, which the transaction has put back into the queue, have not begun, unless they did earlier. */
export function forgetBeginnings(tx: Transaction, ids: readonly string[]): Promise<void> {
  return tx.each(forget, [{ ids }]);
}

const mark = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({ has_begun: 1 })
    .where(idIn(dialect, listOf(p, 'ids'))),
);

/** Records that the jobs have begun, for claims of them that may end before they begin. The transaction has locked them. */
export function markBegun(tx: Transaction, ids: readonly string[]): Promise<void> {
  return tx.each(mark, [{ ids }]);
}

/** Sets the priority of a queued job; undefined where it is not queued. */
export const setPriority = firstRow<{ id: string; priority: number }, Transaction>()((db, p) =>
  db
    .updateTable('jobs')
    .set({ priority: p('priority') })
    .where('id', '=', p('id'))
    .where('status', '=', sql.lit('queued'))
    .returning('id'),
);

/** Sets when a queued job may begin; undefined where it is not queued, or would have expired before it began. */
export const setRunAt = firstRow<{ id: string; run_at: number }, Transaction>()((db, p) =>
  db
    .updateTable('jobs')
    .set({
      run_at: p('run_at'),
      due_at: p('run_at'),
      // Its gates decide anew; the turns of its conversation are not theirs.
      held_by: sql<
        string | null
      >`case when held_by like ${sql.lit(`${behindPrefix}%`)} then held_by end`,
    })
    .where('id', '=', p('id'))
    .where('status', '=', sql.lit('queued'))
    .where((eb) =>
      eb.or([
        eb('expires_at', 'is', null),
        eb('started_at', 'is not', null),
        eb('expires_at', '>', p('run_at')),
      ]),
    )
    .returning([...hintedColumns, 'epoch', 'gated']),
);
