/** The queries of retention. */
import { type SqlBool, sql } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';
import { idIn } from '../../adapters/database/ids-in.ts';
import { allRows, listOf, statement } from '../../adapters/database/statement.ts';
import type { JobStatus } from '../../adapters/database/tables.ts';

/**
 * Jobs whose id lies before `before` and that ended before `ended_before`, the oldest first, without those from whose records a
 * job goes on that has not ended.
 */
export const findEndedJobs = allRows<
  { before: string; ended_before: number; limit: number },
  Transaction
>()((db, p) =>
  db
    .selectFrom('jobs')
    .select('id')
    .where('id', '<', p('before'))
    .where('due_at', 'is', null)
    .where('finished_at', '<', p('ended_before'))
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('jobs as resumed')
            .select('resumed.id')
            .whereRef('resumed.conversation_id', '=', 'jobs.conversation_id')
            .where('resumed.resumes', 'is not', null)
            .where('resumed.due_at', 'is not', null)
            .where(sql<SqlBool>`resumed.resumes like '%' || jobs.id || '%'`),
        ),
      ),
    )
    .orderBy('id')
    .limit(p('limit')),
);

const removeJobs = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .deleteFrom('jobs')
    .where(idIn(dialect, listOf(p, 'ids')))
    .returning([
      'id',
      'organization_id',
      'agent_id',
      'conversation_id',
      'skill_category',
      'skill_name',
      'skill_version',
      'trigger_type',
      'status',
      'batch_id',
    ]),
);
const addToBatch = statement<{
  id: string;
  completed: number;
  failed: number;
  cancelled: number;
}>()((db, p) =>
  db
    .updateTable('batches')
    .set((eb) => ({
      completed: eb('completed', '+', p('completed')),
      failed: eb('failed', '+', p('failed')),
      cancelled: eb('cancelled', '+', p('cancelled')),
    }))
    .where('id', '=', p('id'))
    .where('completed_at', 'is', null),
);

/** Keeps how deleted jobs of batches that are not completed have ended. */
export async function keepCountsOfBatches(
  tx: Transaction,
  jobs: readonly { readonly batch_id: string | null; readonly status: JobStatus }[],
): Promise<void> {
  const ofBatches = Map.groupBy(jobs, ({ batch_id }) => batch_id ?? '');
  ofBatches.delete('');
  const added = [...ofBatches]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, ended]) => {
      const countOf = (status: JobStatus) => ended.filter((job) => job.status === status).length;
      return {
        id,
        completed: countOf('completed'),
        failed: countOf('failed'),
        cancelled: countOf('cancelled'),
      };
    });
  await tx.each(addToBatch, added);
}

const removeEvents = statement<{ job_id: string }>()((db, p) =>
  db.deleteFrom('job_events').where('job_id', '=', p('job_id')),
);

/** Deletes jobs and their event streams; returns those that no other process has deleted meanwhile. */
export async function deleteJobs(tx: Transaction, ids: readonly string[]) {
  const deleted = await tx.all(removeJobs, { ids });
  await tx.each(
    removeEvents,
    deleted.map(({ id }) => ({ job_id: id })),
  );
  return deleted;
}

const oldestEvents = statement<{ limit: number }>()((db, p) =>
  db.selectFrom('events').select(['seq', 'created_at']).orderBy('seq').limit(p('limit')),
);
const removeEventsUpTo = statement<{ seq: number; read_txid: string; read_seq: number }>()(
  (db, p, dialect) => {
    const isRead =
      dialect === 'sqlite'
        ? sql<SqlBool>`seq <= ${p('read_seq')} and ${p('read_txid')} is not null`
        : sql<SqlBool>`(txid, seq) <= (${p('read_txid')}::text::xid8, ${p('read_seq')}::bigint)`;
    return db
      .deleteFrom('events')
      .where('seq', '<=', p('seq'))
      .where('seq', '<', (eb) =>
        eb.selectFrom('events').select((max) => max.fn.max('seq').as('seq')),
      )
      .where(isRead)
      .returning('seq');
  },
);
/** A place in the outbox. */
interface Place {
  readonly txid: string;
  readonly seq: number;
}

/** Behind every event. */
const allRead: Place = { txid: '18446744073709551615', seq: Number.MAX_SAFE_INTEGER };

/**
 * Deletes events of the outbox that are older than `before`, out of the first `limit`; how many. Events
 * behind `read` stay, because the reader has not read them; null says that there is no reader. The newest
 * event stays, whatever its age: SQLite numbers the next one after it, and no number may come twice,
 * because readers follow by it.
 */
export async function deleteOldEvents(
  tx: Transaction,
  before: number,
  limit: number,
  read: Place | null,
): Promise<number> {
  // The oldest come first, so the first young one ends the search.
  const events = await tx.all(oldestEvents, { limit });
  const young = events.findIndex((event) => event.created_at >= before);
  const last = (young === -1 ? events : events.slice(0, young)).at(-1);
  if (last === undefined) return 0;
  const { txid, seq } = read ?? allRead;
  const removed = { seq: last.seq, read_txid: txid, read_seq: seq };
  return (await tx.all(removeEventsUpTo, removed)).length;
}
