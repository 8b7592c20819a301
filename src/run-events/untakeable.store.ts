/** The queries for events that no job can take any more: those that are older than all unended jobs. */
import { type SqlBool, sql } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { isIn } from '../database/ids-in.ts';
import { allRows, firstRow, statement } from '../database/statement.ts';
import type { EventHorizonsTable } from '../database/tables.ts';
import type { EventAddress } from './received.store.ts';
import { countDeleted, type DeletedEvent, deletedEvent } from './totals.store.ts';

const endedBefore = firstRow<{ organization_id: string; walked: number }>()((db, p) => {
  const horizon = db
    .selectFrom('event_horizons')
    .where('organization_id', '=', p('organization_id'))
    .select('job_id');
  const walked = db
    .selectFrom('jobs')
    .where('organization_id', '=', p('organization_id'))
    .where('id', '>=', (eb) => eb.fn.coalesce(horizon, sql.lit('')))
    .orderBy('id');
  const unended = db
    .selectFrom(walked.select(['id', 'due_at']).limit(p('walked')).as('walked'))
    .where('due_at', 'is not', null)
    .select('id')
    .orderBy('id')
    .limit(sql.lit(1));
  const next = walked.select('id').offset(p('walked')).limit(sql.lit(1));
  return db.selectNoFrom((eb) => eb.fn.coalesce(unended, next).as('id'));
});

/**
 * An id before which all jobs of the organization have ended; null when all of them have. It is that of
 * the oldest unended job, unless more than `walked` jobs have ended since the horizon.
 */
export async function findEndedBefore(
  db: Handle,
  organizationId: string,
  walked: number,
): Promise<string | null> {
  const row = await endedBefore(db, { organization_id: organizationId, walked });
  return row?.id ?? null;
}

const advance = statement<EventHorizonsTable>()((db, p) =>
  db
    .insertInto('event_horizons')
    .values({ organization_id: p('organization_id'), job_id: p('job_id') })
    .onConflict((conflict) =>
      conflict
        .column('organization_id')
        .doUpdateSet((eb) => ({ job_id: eb.ref('excluded.job_id') }))
        .whereRef('event_horizons.job_id', '<', 'excluded.job_id'),
    ),
);

/** Records that all jobs of the organization before `jobId` have ended. It must not be of a recent time. */
export function advanceHorizon(tx: Transaction, row: EventHorizonsTable): Promise<void> {
  return tx.each(advance, [row]);
}

const storing = allRows<{ after: string; limit: number }>()((db, p) =>
  db
    .selectFrom('event_totals')
    .where('organization_id', '>', p('after'))
    .groupBy('organization_id')
    .having(({ fn }) => fn.sum('events'), '>', sql.lit(0))
    .select((eb) => [
      'organization_id',
      eb
        .selectFrom('event_horizons')
        .whereRef('event_horizons.organization_id', '=', 'event_totals.organization_id')
        .select('job_id')
        .as('horizon'),
    ])
    .orderBy('organization_id')
    .limit(p('limit')),
);

/** Organizations after one for which events are stored, and their horizons. */
export function pageOfOrganizations(db: Handle, after: string, limit: number) {
  return storing(db, { after, limit });
}

type Oldest = Pick<EventAddress, 'organization_id'> & {
  taken: 0 | 1;
  before: string;
  limit: number;
};

const oldestBefore = firstRow<Omit<Oldest, 'limit'>>()((db, p) =>
  db
    .selectFrom('received_events')
    .where('organization_id', '=', p('organization_id'))
    .where('taken', '=', p('taken'))
    .where('id', '<', p('before'))
    .where('told', '=', sql.lit(1))
    .select('id')
    .orderBy('id')
    .limit(sql.lit(1)),
);

/** Whether an organization has told events before an id, taken by runs or not. */
export async function hasEventsBefore(db: Handle, asked: Omit<Oldest, 'limit'>): Promise<boolean> {
  return (await oldestBefore(db, asked)) !== undefined;
}

const removeOldest = statement<Oldest>()((db, p, dialect) => {
  const oldest = sql`select id from received_events where organization_id = ${p('organization_id')}
    and taken = ${p('taken')} and id < ${p('before')} and told = 1 order by id limit ${p('limit')}`;
  const found =
    dialect === 'sqlite'
      ? sql<SqlBool>`id in (${oldest})`
      : sql<SqlBool>`id = any (array(${oldest} for update skip locked))`;
  return db.deleteFrom('received_events').where(found).returning(deletedEvent);
});

/** Deletes the oldest events of an organization, of those that runs have taken or of the others; how many. */
export function removeOldestEvents(tx: Transaction, asked: Oldest): Promise<number> {
  return removed(tx, tx.all(removeOldest, asked));
}

const isOfEndedJob = sql<SqlBool>`(job_id is not null and not exists (
  select 1 from jobs where jobs.id = received_events.job_id and jobs.due_at is not null))`;

const removeOfAddress = statement<EventAddress & { before: string }>()((db, p) =>
  db
    .deleteFrom('received_events')
    .where('organization_id', '=', p('organization_id'))
    .where('event', '=', p('event'))
    .where('key', '=', p('key'))
    .where('told', '=', sql.lit(1))
    .where((eb) => eb.or([eb('id', '<', p('before')), isOfEndedJob]))
    .returning(deletedEvent),
);

/** Deletes the events of an address that are older than `before`, or for a job that has ended; how many. */
export function removeEventsOfAddress(
  tx: Transaction,
  { organization_id, event, key }: EventAddress,
  before: string,
): Promise<number> {
  return removed(tx, tx.all(removeOfAddress, { organization_id, event, key, before }));
}

const removeOfJobs = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .deleteFrom('received_events')
    .where('job_id', 'is not', null)
    .where(isIn(dialect, sql.ref('job_id'), p.list('ids')))
    .returning(deletedEvent),
);

/** Deletes the events that only these jobs could take; how many. */
export function removeEventsOfJobs(tx: Transaction, ids: readonly string[]): Promise<number> {
  return removed(tx, tx.all(removeOfJobs, { ids }));
}

async function removed(tx: Transaction, deleting: Promise<DeletedEvent[]>): Promise<number> {
  const deleted = await deleting;
  await countDeleted(tx, deleted);
  return deleted.length;
}
