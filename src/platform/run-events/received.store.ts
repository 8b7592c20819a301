/** Events from outside: stored for runs that may take them later. */
import { type Selectable, sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { allRows, firstRow, statement } from '../../adapters/database/statement.ts';
import type { ReceivedEventsTable } from '../../adapters/database/tables.ts';
import { countDeleted, countStored, deletedEvent } from './totals.store.ts';

/** The columns by which waits and events find each other. */
export interface EventAddress {
  readonly organization_id: string;
  readonly event: string;
  /** Empty for an event without one. */
  readonly key: string;
}

export type ReceivedEvent = Selectable<ReceivedEventsTable>;

const lockAlone = statement<{ text: string }>()((db, p) =>
  db.selectNoFrom(sql`pg_advisory_xact_lock(hashtextextended(${p('text')}::text, 0))`.as('locked')),
);
const lockShared = statement<{ text: string }>()((db, p) =>
  db.selectNoFrom(
    sql`pg_advisory_xact_lock_shared(hashtextextended(${p('text')}::text, 0))`.as('locked'),
  ),
);

/**
 * Locks an address until the transaction ends, so that an event does not come while a wait for it
 * begins: an event locks it alone, and waits lock it together. The next statement sees everything that
 * was committed by the earlier holders. Lock jobs first.
 */
export async function lockAddress(
  tx: Transaction,
  { organization_id, event, key }: EventAddress,
  by: 'event' | 'wait',
): Promise<void> {
  // SQLite has only one writer at a time.
  if (tx.dialect === 'sqlite') return;
  const text = JSON.stringify([organization_id, event, key]);
  await tx.each(by === 'event' ? lockAlone : lockShared, [{ text }]);
}

const facts = firstRow<EventAddress & { untaken_max: number; kept: number }, Transaction>()(
  (db, p) => {
    const stored = db
      .selectFrom('received_events')
      .where('organization_id', '=', p('organization_id'))
      .where('event', '=', p('event'))
      .where('key', '=', p('key'));
    const untaken = stored
      .where('taken', '=', sql.lit(0))
      .select('id')
      .orderBy('id')
      .limit(p('untaken_max'))
      .as('untaken');
    const newestJob = db
      .selectFrom('jobs')
      .where('organization_id', '=', p('organization_id'))
      .orderBy('id', 'desc')
      .limit(sql.lit(1));
    const totals = db
      .selectFrom('event_totals')
      .where('organization_id', '=', p('organization_id'));
    return db.selectNoFrom([
      newestJob.select('id').as('newest_job'),
      db
        .selectFrom('jobs')
        .where('organization_id', '=', p('organization_id'))
        .where('due_at', 'is not', null)
        .select('id')
        .orderBy('id')
        .limit(sql.lit(1))
        .as('unended_job'),
      stored.select('id').orderBy('id', 'desc').limit(sql.lit(1)).as('newest_event'),
      db
        .selectFrom(untaken)
        .select(({ fn }) => fn.countAll<number>().as('n'))
        .as('untaken'),
      stored
        .where('told', '=', sql.lit(0))
        .select('id')
        .orderBy('id')
        .limit(sql.lit(1))
        .as('pending'),
      stored
        .where('taken', '=', sql.lit(1))
        .select('id')
        .orderBy('id', 'desc')
        .limit(sql.lit(1))
        .offset(p('kept'))
        .as('surplus'),
      totals.select(({ fn }) => fn.sum<number>('events').as('n')).as('events'),
      totals.select(({ fn }) => fn.sum<number>('bytes').as('n')).as('bytes'),
    ]);
  },
);

/** The facts that decide about a new event of an address. The transaction has locked the address. */
export interface AddressFacts {
  /** The newest job of the organization and the newest event of the address, whose ids lie before the new one's. */
  readonly newest: readonly string[];
  /** Whether a job of the organization has not ended. */
  readonly isAnyUnended: boolean;
  /** Events that no run has taken, at most `untakenMax`. */
  readonly untaken: number;
  /** Whether an earlier event is pending: not all jobs that wait for it have it. */
  readonly isBehind: boolean;
  /** The newest of the events that are more than the `kept` newest ones that runs have taken. */
  readonly surplus: string | null;
  /** The stored events of the organization. */
  readonly stored: { readonly events: number; readonly bytes: number };
}

export async function addressFacts(
  tx: Transaction,
  { organization_id, event, key }: EventAddress,
  untakenMax: number,
  kept: number,
): Promise<AddressFacts> {
  const row = await facts(tx, { organization_id, event, key, untaken_max: untakenMax, kept });
  return {
    newest: [row?.newest_job, row?.newest_event].filter((id) => typeof id === 'string'),
    untaken: Number(row?.untaken ?? 0),
    isBehind: typeof row?.pending === 'string',
    isAnyUnended: typeof row?.unended_job === 'string',
    surplus: row?.surplus ?? null,
    stored: { events: Number(row?.events ?? 0), bytes: Number(row?.bytes ?? 0) },
  };
}

export async function insertEvent(tx: Transaction, row: ReceivedEvent): Promise<void> {
  await tx.insert('received_events', [row]);
  await countStored(tx, row, Buffer.byteLength(row.data));
}

const removeTaken = statement<EventAddress & { up_to: string }>()((db, p) =>
  db
    .deleteFrom('received_events')
    .where('organization_id', '=', p('organization_id'))
    .where('event', '=', p('event'))
    .where('key', '=', p('key'))
    .where('id', '<=', p('up_to'))
    .where('taken', '=', sql.lit(1))
    .where('told', '=', sql.lit(1))
    .returning(deletedEvent),
);

/** Deletes the events of an address that runs have taken, up to `upTo`. */
export async function removeTakenEvents(
  tx: Transaction,
  address: EventAddress,
  upTo: string,
): Promise<void> {
  await countDeleted(tx, await tx.all(removeTaken, { ...address, up_to: upTo }));
}

const ofOrganization = firstRow<{ id: string; organization_id: string }, Transaction>()((db, p) =>
  db
    .selectFrom('jobs')
    .select('due_at')
    .where('id', '=', p('id'))
    .where('organization_id', '=', p('organization_id')),
);

/** Whether such a job of the organization has ended; undefined where there is none. */
export async function hasJobEnded(
  tx: Transaction,
  organizationId: string,
  id: string,
): Promise<boolean | undefined> {
  const job = await ofOrganization(tx, { id, organization_id: organizationId });
  return job && job.due_at === null;
}

const pending = firstRow<EventAddress, Transaction>()((db, p) =>
  db
    .selectFrom('received_events')
    .selectAll()
    .where('organization_id', '=', p('organization_id'))
    .where('event', '=', p('event'))
    .where('key', '=', p('key'))
    .where('told', '=', sql.lit(0))
    .orderBy('id')
    .limit(sql.lit(1)),
);

/** The oldest event of an address that some of the jobs that wait for it have not got. */
export function findPendingEvent(
  tx: Transaction,
  { organization_id, event, key }: EventAddress,
): Promise<ReceivedEvent | undefined> {
  return pending(tx, { organization_id, event, key });
}

const updateHandover = statement<{ id: string; told: number; taken: number }>()((db, p) =>
  db
    .updateTable('received_events')
    .set((eb) => ({
      told: p('told'),
      taken: eb
        .case()
        .when(p('taken'), '=', sql.lit(1))
        .then(sql.lit(1))
        .else(eb.ref('taken'))
        .end(),
    }))
    .where('id', '=', p('id')),
);

/**
 * Records a handover: `isDone` when no job waits for the event any more (the column `told`), `isTaken` when a job
 * just got it.
 */
export function recordHandover(
  tx: Transaction,
  id: string,
  { isDone, isTaken }: { readonly isDone: boolean; readonly isTaken: boolean },
): Promise<void> {
  return tx.each(updateHandover, [{ id, told: isDone ? 1 : 0, taken: isTaken ? 1 : 0 }]);
}

const addresses = allRows<{ limit: number }>()((db, p) =>
  db
    .selectFrom('received_events')
    .select(['organization_id', 'event', 'key'])
    .distinct()
    .where('told', '=', sql.lit(0))
    .limit(p('limit')),
);

/** Addresses that have pending events. */
export function listPendingAddresses(db: Handle, limit: number): Promise<EventAddress[]> {
  return addresses(db, { limit });
}
