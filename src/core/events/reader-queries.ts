/** The queries that read the outbox. */
import { type Kysely, type RawBuilder, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';
import type { Dialect, Handle, Transaction } from '../../adapters/database/database.ts';
import { statement } from '../../adapters/database/statement.ts';
import type { Tables } from '../../adapters/database/tables.ts';

/** The position of a reader: the transaction and the number of the last event that it has read. */
export interface ReaderCursor {
  readonly txid: string;
  readonly seq: number;
}

/** An event as it was recorded. */
export interface OutboxEvent extends ReaderCursor {
  readonly id: string;
  readonly organization_id: string;
  readonly agent_id: string;
  readonly type: string;
  /** JSON object. */
  readonly data: string;
  readonly created_at: number;
}

const cursorStatement = (lock: 'none' | 'wait' | 'skip') =>
  statement<{ name: string }>()((db, p, dialect) => {
    const query = db
      .selectFrom('event_cursors')
      .select(['txid', 'seq'])
      .where('name', '=', p('name'));
    if (lock === 'none' || dialect === 'sqlite') return query;
    return lock === 'wait' ? query.forUpdate() : query.forUpdate().skipLocked();
  });
const cursor = cursorStatement('none');
const freeCursor = cursorStatement('skip');
const heldCursor = cursorStatement('wait');

export function readerCursor(db: Handle, name: string): Promise<ReaderCursor | undefined> {
  return db.first(cursor, { name });
}

/** Locks a cursor without waiting; undefined when another transaction has locked it, or without one. */
export function takeCursor(tx: Transaction, name: string): Promise<ReaderCursor | undefined> {
  return tx.first(freeCursor, { name });
}

/** Locks a cursor, waiting for other transactions; creates it at the start of the outbox if needed. */
export async function holdCursor(tx: Transaction, name: string): Promise<void> {
  await tx.kysely
    .insertInto('event_cursors')
    .values({ name, txid: '0', seq: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await waitForReader(tx, name);
}

/** Like `holdCursor`, without creating one. */
export async function waitForReader(tx: Transaction, name: string): Promise<void> {
  await tx.first(heldCursor, { name });
}

export async function setCursor(tx: Transaction, name: string, to: ReaderCursor): Promise<void> {
  await tx.kysely
    .updateTable('event_cursors')
    .set({ txid: to.txid, seq: to.seq })
    .where('name', '=', name)
    .execute();
}

interface Range extends ReaderCursor {
  readonly limit: number;
}

/** The parameters of a statement that reads a range. */
interface RangeParam {
  (name: 'limit' | 'seq'): RawBuilder<number>;
  (name: 'txid'): RawBuilder<string>;
}

type Events = SelectQueryBuilder<Tables, 'events', unknown>;

/** The events after a cursor, in their order. */
function following(events: Events, p: RangeParam, dialect: Dialect) {
  const query = events
    .select(['seq', 'id', 'organization_id', 'agent_id', 'type', 'data', 'created_at'])
    .limit(p('limit'));
  if (dialect === 'sqlite') {
    return query.select(sql<string>`'0'`.as('txid')).where('seq', '>', p('seq')).orderBy('seq');
  }
  return query
    .select(sql<string>`txid::text`.as('txid'))
    .where(sql<SqlBool>`(txid, seq) > (${p('txid')}::text::xid8, ${p('seq')}::bigint)`)
    .orderBy(sql`events.txid`)
    .orderBy('seq');
}

/** Like `following`, without the events before which others may still appear. */
function settled(events: Events, p: RangeParam, dialect: Dialect) {
  const query = following(events, p, dialect);
  return dialect === 'sqlite'
    ? query
    : query.where(sql<SqlBool>`txid < pg_snapshot_xmin(pg_current_snapshot())`);
}

function ofOrganization(
  db: Kysely<Tables>,
  p: (name: 'organization_id') => RawBuilder<string>,
): Events {
  return db.selectFrom('events').where('organization_id', '=', p('organization_id'));
}

const eventsAfter = statement<Range>()((db, p, dialect) =>
  settled(db.selectFrom('events'), p, dialect),
);

/**
 * Events after a cursor, in order. On PostgreSQL that is the order of transactions, and only events of
 * transactions older than every open one are read, so no event can appear before them later.
 */
export function findEventsAfter(
  db: Handle,
  { txid, seq }: ReaderCursor,
  limit: number,
): Promise<OutboxEvent[]> {
  return db.all(eventsAfter, { txid, seq, limit });
}

const eventsOfAfter = statement<Range & { organization_id: string }>()((db, p, dialect) =>
  settled(ofOrganization(db, p), p, dialect),
);

/** Like `findEventsAfter`, of one organization. */
export function eventsFollowing(
  db: Handle,
  organizationId: string,
  { txid, seq }: ReaderCursor,
  limit: number,
): Promise<OutboxEvent[]> {
  return db.all(eventsOfAfter, { txid, seq, organization_id: organizationId, limit });
}

const eventsOf = statement<Range & { organization_id: string; to_txid: string; to_seq: number }>()(
  (db, p, dialect) =>
    following(ofOrganization(db, p), p, dialect).where(
      dialect === 'sqlite'
        ? sql<SqlBool>`seq <= ${p('to_seq')} and ${p('to_txid')} is not null`
        : sql<SqlBool>`(txid, seq) <= (${p('to_txid')}::text::xid8, ${p('to_seq')}::bigint)`,
    ),
);

/** Events of one organization between two cursors, in their order. */
export function findEventsOf(
  db: Handle,
  organizationId: string,
  after: ReaderCursor,
  to: ReaderCursor,
  limit: number,
): Promise<OutboxEvent[]> {
  const range = { ...after, to_txid: to.txid, to_seq: to.seq };
  return db.all(eventsOf, { ...range, organization_id: organizationId, limit });
}

/**
 * The names of cursors, compared by their bytes. A collation of PostgreSQL may ignore punctuation, and
 * then `reader/x` does not lie between `reader/` and `reader0`. SQLite compares bytes anyway.
 */
function nameIn(dialect: Dialect): RawBuilder<string> {
  return dialect === 'sqlite' ? sql<string>`name` : sql<string>`name collate "C"`;
}

/** The names that begin with `reader/`: the character after the slash ends the range. */
function rangeBelow(reader: string): { from: string; to: string } {
  return { from: `${reader}/`, to: `${reader}0` };
}

const nextBelow = statement<{ from: string; to: string; after: string }>()((db, p, dialect) =>
  db
    .selectFrom('event_cursors')
    .select('name')
    .where(nameIn(dialect), '>', p('from'))
    .where(nameIn(dialect), '<', p('to'))
    .where(nameIn(dialect), '>', p('after'))
    .orderBy(nameIn(dialect))
    .limit(sql.lit(1)),
);

/** The first name behind `after`, in the order of bytes, of the cursors whose names begin with `reader/`. */
export async function findNextBelow(
  db: Handle,
  reader: string,
  after: string,
): Promise<string | undefined> {
  return (await db.first(nextBelow, { ...rangeBelow(reader), after }))?.name;
}

const firstBelow = statement<{ from: string; to: string }>()((db, p, dialect) => {
  const cursors = db
    .selectFrom('event_cursors')
    .select(['txid', 'seq'])
    .where(nameIn(dialect), '>', p('from'))
    .where(nameIn(dialect), '<', p('to'))
    .limit(sql.lit(1));
  // On SQLite the transaction is always 0.
  return dialect === 'sqlite'
    ? cursors.orderBy('seq')
    : cursors.orderBy(sql`txid::xid8`).orderBy('seq');
});

/** Where the cursor stands that is furthest behind, of those whose names begin with `reader/`. */
export function furthestBehind(db: Handle, reader: string): Promise<ReaderCursor | undefined> {
  return db.first(firstBelow, rangeBelow(reader));
}

/** The names that have a cursor. */
export async function findNamedCursors(
  tx: Transaction,
  names: readonly string[],
): Promise<string[]> {
  const rows = await tx.kysely
    .selectFrom('event_cursors')
    .select('name')
    .where('name', 'in', names)
    .execute();
  return rows.map(({ name }) => name);
}

export async function insertCursor(tx: Transaction, name: string, at: ReaderCursor): Promise<void> {
  await tx.kysely
    .insertInto('event_cursors')
    .values({ name, txid: at.txid, seq: at.seq })
    .execute();
}

export async function deleteCursor(tx: Transaction, name: string): Promise<void> {
  await tx.kysely.deleteFrom('event_cursors').where('name', '=', name).execute();
}

export async function dropBacklogs(tx: Transaction, reader: string): Promise<void> {
  const { from, to } = rangeBelow(reader);
  await tx.kysely
    .deleteFrom('event_cursors')
    .where(nameIn(tx.dialect), '>', from)
    .where(nameIn(tx.dialect), '<', to)
    .execute();
}

const firstAfter = statement<ReaderCursor>()((db, p, dialect) => {
  const events = db.selectFrom('events').select('created_at').limit(sql.lit(1));
  if (dialect === 'sqlite') return events.where('seq', '>', p('seq')).orderBy('seq');
  return events
    .where(sql<SqlBool>`(txid, seq) > (${p('txid')}::text::xid8, ${p('seq')}::bigint)`)
    .orderBy(sql`events.txid`)
    .orderBy('seq');
});

/** When the first event after a cursor was recorded, also when it cannot be read yet. */
export async function oldestBehind(db: Handle, cursor: ReaderCursor): Promise<number | undefined> {
  return (await db.first(firstAfter, cursor))?.created_at;
}

/** The end of the outbox, as a cursor: on PostgreSQL, before the oldest open transaction. */
export async function endOfOutbox(tx: Transaction): Promise<ReaderCursor> {
  if (tx.dialect === 'sqlite') return { txid: '0', seq: await lastSeq(tx) };
  const { rows } = await sql<{
    txid: string;
  }>`select pg_snapshot_xmin(pg_current_snapshot())::text as txid`.execute(tx.kysely);
  return { txid: rows[0]?.txid ?? '0', seq: 0 };
}

/**
 * The current place, as a text for `isAfter` (reader.ts): on SQLite the number of the last event, on
 * PostgreSQL the snapshot, which contains all transactions that have committed by now.
 */
export async function presentPlace(tx: Transaction): Promise<string> {
  if (tx.dialect === 'sqlite') return String(await lastSeq(tx));
  const { rows } = await sql<{
    place: string;
  }>`select pg_current_snapshot()::text as place`.execute(tx.kysely);
  return rows[0]?.place ?? '';
}

async function lastSeq(tx: Transaction): Promise<number> {
  const row = await tx.kysely
    .selectFrom('events')
    .select((eb) => eb.fn.max<number | null>('seq').as('seq'))
    .executeTakeFirst();
  return row?.seq ?? 0;
}
