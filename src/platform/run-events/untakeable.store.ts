/** The queries for events that no job can take any more: those that are older than all unended jobs. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Dialect, Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn, isIn } from '../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf, statement } from '../../adapters/database/statement.ts';
import type { EventAddress } from './received.store.ts';
import { countDeleted, type DeletedEvent, deletedEvent } from './totals.store.ts';

/** Sorts after every id. */
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * The id before which all jobs of an organization have ended: that of its oldest unended one. Part of the
 * statement that deletes, so that what it deletes and the jobs are of one moment.
 */
const oldestUnended = (organizationId: RawBuilder<string>) => sql<string>`coalesce(
  (select id from jobs where organization_id = ${organizationId} and due_at is not null
    order by id limit 1),
  ${sql.lit(lastId)})`;

const storing = allRows<{ after: string; limit: number }>()((db, p) =>
  db
    .selectFrom('event_totals')
    .where('organization_id', '>', p('after'))
    .groupBy('organization_id')
    .having(({ fn }) => fn.sum('events'), '>', sql.lit(0))
    .select('organization_id')
    .orderBy('organization_id')
    .limit(p('limit')),
);

/** Organizations after one for which events are stored. */
export function pageOfOrganizations(db: Handle, after: string, limit: number) {
  return storing(db, { after, limit });
}

type OfOrganization = Pick<EventAddress, 'organization_id'> & { readonly limit: number };

/** The oldest events of an organization, of those that runs have taken or of the others. */
type Oldest = OfOrganization & { readonly taken: 0 | 1 };

const untakeable = firstRow<Omit<Oldest, 'limit'>>()((db, p) =>
  db
    .selectFrom('received_events')
    .where('organization_id', '=', p('organization_id'))
    .where('taken', '=', p('taken'))
    .where('id', '<', oldestUnended(p('organization_id')))
    .where('told', '=', sql.lit(1))
    .select('id')
    .orderBy('id')
    .limit(sql.lit(1)),
);

/** Whether an organization has events that are not pending and that no job can take, taken by runs or not. */
export async function hasUntakeable(db: Handle, oldest: Omit<Oldest, 'limit'>): Promise<boolean> {
  return (await untakeable(db, oldest)) !== undefined;
}

function isFound(dialect: Dialect, oldest: RawBuilder<unknown>) {
  return dialect === 'sqlite'
    ? sql<SqlBool>`id in (${oldest})`
    : sql<SqlBool>`id = any (array(${oldest} for update skip locked))`;
}

const removeUntakeableOf = statement<Oldest>()((db, p, dialect) => {
  const oldest = sql`select id from received_events where organization_id = ${p('organization_id')}
    and taken = ${p('taken')} and id < ${oldestUnended(p('organization_id'))} and told = 1
    order by id limit ${p('limit')}`;
  return db.deleteFrom('received_events').where(isFound(dialect, oldest)).returning(deletedEvent);
});

/** Deletes the oldest events of an organization that no job can take; how many. */
export function removeUntakeableEvents(tx: Transaction, oldest: Oldest): Promise<number> {
  return removed(tx, tx.all(removeUntakeableOf, oldest));
}

const removeOldestTaken = statement<OfOrganization>()((db, p, dialect) => {
  const oldest = sql`select id from received_events where organization_id = ${p('organization_id')}
    and taken = 1 and told = 1 order by id limit ${p('limit')}`;
  return db.deleteFrom('received_events').where(isFound(dialect, oldest)).returning(deletedEvent);
});

/** Deletes the oldest events of an organization that runs have taken; how many. */
export function removeOldestTakenEvents(tx: Transaction, oldest: OfOrganization): Promise<number> {
  return removed(tx, tx.all(removeOldestTaken, oldest));
}

const isOfEndedJob = sql<SqlBool>`(job_id is not null and not exists (
  select 1 from jobs where jobs.id = received_events.job_id and jobs.due_at is not null))`;

const removeOfAddress = statement<EventAddress>()((db, p) =>
  db
    .deleteFrom('received_events')
    .where('organization_id', '=', p('organization_id'))
    .where('event', '=', p('event'))
    .where('key', '=', p('key'))
    .where('told', '=', sql.lit(1))
    .where((eb) => eb.or([eb('id', '<', oldestUnended(p('organization_id'))), isOfEndedJob]))
    .returning(deletedEvent),
);

/** Deletes the events of an address that no job can take, also those for a job that has ended; how many. */
export function removeEventsOfAddress(
  tx: Transaction,
  { organization_id, event, key }: EventAddress,
): Promise<number> {
  return removed(tx, tx.all(removeOfAddress, { organization_id, event, key }));
}

const removeTaken = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .deleteFrom('received_events')
    .where(idIn(dialect, listOf(p, 'ids')))
    .where('taken', '=', sql.lit(1))
    .returning(deletedEvent),
);

/** Deletes those of the events that runs have taken; how many. */
export function removeEventsTaken(tx: Transaction, ids: readonly string[]): Promise<number> {
  return removed(tx, tx.all(removeTaken, { ids }));
}

const removeOfJobs = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .deleteFrom('received_events')
    .where('job_id', 'is not', null)
    .where(isIn(dialect, sql.ref('job_id'), listOf(p, 'ids')))
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
