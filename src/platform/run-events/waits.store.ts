/** The waits of runs for events, and the last event of a name and key that each job got. */

import { type Selectable, sql } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';
import { allRows, firstRow, statement } from '../../adapters/database/statement.ts';
import type { EventPositionsTable, EventWaitsTable } from '../../adapters/database/tables.ts';
import type { EventAddress, ReceivedEvent } from './received.store.ts';
import { countDeleted, deletedEvent } from './totals.store.ts';
import { removeEventsOfJobs } from './untakeable.store.ts';

type WaitRow = Selectable<EventWaitsTable>;
type PositionRow = Selectable<EventPositionsTable>;

/** An event and the number of waiting jobs to find. */
interface WaitQuery extends EventAddress {
  /** The only job that may take it; empty for all. */
  readonly job_id: string;
  readonly event_id: string;
  readonly limit: number;
}

const waiting = allRows<WaitQuery, Transaction>()((db, p) =>
  db
    .selectFrom('event_waits as w')
    .select(({ fn }) => ['w.job_id', fn.min('w.n').as('n')])
    .where('w.organization_id', '=', p('organization_id'))
    .where('w.event', '=', p('event'))
    .where('w.key', '=', p('key'))
    .where((eb) => eb.or([eb('w.job_id', '=', p('job_id')), eb(p('job_id'), '=', sql.lit(''))]))
    // PostgreSQL looks up a subquery of one row for each job; it might plan a join as a scan.
    .where(
      ({ fn, selectFrom }) =>
        fn.coalesce(
          selectFrom('event_positions as had')
            .select('had.event_id')
            .where('had.organization_id', '=', p('organization_id'))
            .where('had.event', '=', p('event'))
            .where('had.key', '=', p('key'))
            .whereRef('had.job_id', '=', 'w.job_id'),
          sql.lit(''),
        ),
      '<',
      p('event_id'),
    )
    .groupBy('w.job_id')
    .orderBy('w.job_id')
    .limit(p('limit')),
);

/** The oldest wait of each job that waits for an event and has not had it or a later one, by job. */
export function findWaiting(
  tx: Transaction,
  { organization_id, event, key, job_id, event_id, limit }: WaitQuery,
): Promise<{ job_id: string; n: number }[]> {
  return waiting(tx, { organization_id, event, key, job_id, event_id, limit });
}

export function insertWait(tx: Transaction, row: WaitRow): Promise<void> {
  return tx.insert('event_waits', [row]);
}

const remove = statement<{ job_id: string; n: number }>()((db, p) =>
  db.deleteFrom('event_waits').where('job_id', '=', p('job_id')).where('n', '=', p('n')),
);

export function removeWaits(
  tx: Transaction,
  waits: readonly { readonly job_id: string; readonly n: number }[],
): Promise<void> {
  return tx.each(
    remove,
    waits.map(({ job_id, n }) => ({ job_id, n })),
  );
}

const removeOfJob = statement<{ job_id: string }>()((db, p) =>
  db.deleteFrom('event_waits').where('job_id', '=', p('job_id')),
);
const removePositions = statement<{ job_id: string }>()((db, p) =>
  db.deleteFrom('event_positions').where('job_id', '=', p('job_id')),
);

/** Deletes everything about the events of jobs that have ended, and the events for them alone. */
export async function forgetJobs(tx: Transaction, ids: readonly string[]): Promise<void> {
  const jobs = ids.map((id) => ({ job_id: id }));
  await tx.each(removeOfJob, jobs);
  await tx.each(removePositions, jobs);
  await removeEventsOfJobs(tx, ids);
}

const advance = statement<PositionRow>()((db, p) =>
  db
    .insertInto('event_positions')
    .values({
      organization_id: p('organization_id'),
      event: p('event'),
      key: p('key'),
      job_id: p('job_id'),
      event_id: p('event_id'),
    })
    .onConflict((conflict) =>
      conflict
        .columns(['organization_id', 'event', 'key', 'job_id'])
        .doUpdateSet((eb) => ({ event_id: eb.ref('excluded.event_id') })),
    ),
);

/** Records the last event that each of the jobs got. */
export function advancePositions(tx: Transaction, rows: readonly PositionRow[]): Promise<void> {
  return tx.each(advance, rows);
}

const takeable = firstRow<EventAddress & { job_id: string }, Transaction>()((db, p) =>
  db
    .selectFrom('received_events')
    .selectAll()
    .where('organization_id', '=', p('organization_id'))
    .where('event', '=', p('event'))
    .where('key', '=', p('key'))
    .where('id', '>', ({ fn, selectFrom }) =>
      fn.coalesce(
        selectFrom('event_positions')
          .select('event_id')
          .where('organization_id', '=', p('organization_id'))
          .where('event', '=', p('event'))
          .where('key', '=', p('key'))
          .where('job_id', '=', p('job_id')),
        p('job_id'),
      ),
    )
    .where((eb) => eb.or([eb('job_id', 'is', null), eb('job_id', '=', p('job_id'))]))
    .orderBy('id')
    .limit(sql.lit(1)),
);

/** The oldest stored event that came after the job was accepted and after the last one that it got. */
export function findTakeable(
  tx: Transaction,
  { organization_id, event, key }: EventAddress,
  jobId: string,
): Promise<ReceivedEvent | undefined> {
  return takeable(tx, { organization_id, event, key, job_id: jobId });
}

const markTaken = statement<{ id: string }>()((db, p) =>
  db
    .updateTable('received_events')
    .set({ taken: 1 })
    .where('id', '=', p('id'))
    .where('taken', '=', sql.lit(0)),
);
const removeEvent = statement<{ id: string }>()((db, p) =>
  db.deleteFrom('received_events').where('id', '=', p('id')).returning(deletedEvent),
);

/** Records that a run has taken a stored event. One that no other run may take is deleted. */
export async function recordTaken(
  tx: Transaction,
  { id, job_id }: Pick<ReceivedEvent, 'id' | 'job_id'>,
): Promise<void> {
  if (job_id === null) await tx.each(markTaken, [{ id }]);
  else await countDeleted(tx, await tx.all(removeEvent, { id }));
}

const jobsIn = (table: 'event_positions' | 'received_events') =>
  allRows<{ after: string; limit: number }>()((db, p) =>
    db
      .selectFrom(table)
      .select((eb) => [
        eb.ref('job_id').$castTo<string>().as('job_id'),
        eb
          .selectFrom('jobs')
          .select('due_at')
          .whereRef('jobs.id', '=', `${table}.job_id`)
          .as('due_at'),
      ])
      .where('job_id', 'is not', null)
      .where('job_id', '>', p('after'))
      .groupBy('job_id')
      .orderBy('job_id')
      .limit(p('limit')),
  );

/** Jobs after one, in the order of their ids; `due_at` is null for those that have ended. */
export const pagesOfJobs = [
  // Jobs that got events, and jobs for which alone events are stored.
  jobsIn('event_positions'),
  jobsIn('received_events'),
];
