/** The queries by which the outbox is read. */
import { type SqlBool, sql } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { statement } from '../database/statement.ts';

/** How far a reader has come: the transaction and the number of the last event that it has read. */
export interface Cursor {
  readonly txid: string;
  readonly seq: number;
}

/** An event as it was recorded. */
export interface RecordedEvent extends Cursor {
  readonly id: string;
  readonly organization_id: string;
  readonly agent_id: string;
  readonly type: string;
  /** JSON object. */
  readonly data: string;
  readonly created_at: number;
}

const cursor = statement<{ name: string }>()((db, p) =>
  db.selectFrom('event_cursors').select(['txid', 'seq']).where('name', '=', p('name')),
);
const freeCursor = statement<{ name: string }>()((db, p, dialect) => {
  const query = db
    .selectFrom('event_cursors')
    .select(['txid', 'seq'])
    .where('name', '=', p('name'));
  return dialect === 'sqlite' ? query : query.forUpdate().skipLocked();
});
const heldCursor = statement<{ name: string }>()((db, p, dialect) => {
  const query = db
    .selectFrom('event_cursors')
    .select(['txid', 'seq'])
    .where('name', '=', p('name'));
  return dialect === 'sqlite' ? query : query.forUpdate();
});

export function findCursor(db: Handle, name: string): Promise<Cursor | undefined> {
  return db.first(cursor, { name });
}

/** Locks a cursor; undefined while another transaction has it, or when there is none. */
export function takeCursor(tx: Transaction, name: string): Promise<Cursor | undefined> {
  return tx.first(freeCursor, { name });
}

/** Locks a cursor, made at the outbox's beginning when there is none; waits for whoever has it. */
export async function holdCursor(tx: Transaction, name: string): Promise<void> {
  await tx.kysely
    .insertInto('event_cursors')
    .values({ name, txid: '0', seq: 0 })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await tx.first(heldCursor, { name });
}

export async function setCursor(tx: Transaction, name: string, to: Cursor): Promise<void> {
  await tx.kysely
    .updateTable('event_cursors')
    .set({ txid: to.txid, seq: to.seq })
    .where('name', '=', name)
    .execute();
}

const eventsAfter = statement<Cursor & { limit: number }>()((db, p, dialect) => {
  const events = db
    .selectFrom('events')
    .select(['seq', 'id', 'organization_id', 'agent_id', 'type', 'data', 'created_at'])
    .limit(p('limit'));
  if (dialect === 'sqlite') {
    return events.select(sql<string>`'0'`.as('txid')).where('seq', '>', p('seq')).orderBy('seq');
  }
  return events
    .select(sql<string>`txid::text`.as('txid'))
    .where(sql<SqlBool>`(txid, seq) > (${p('txid')}::text::xid8, ${p('seq')}::bigint)`)
    .where(sql<SqlBool>`txid < pg_snapshot_xmin(pg_current_snapshot())`)
    .orderBy(sql`events.txid`)
    .orderBy('seq');
});

/**
 * Events after a cursor, in their order. On PostgreSQL that is the order of transactions, and only
 * those older than every one still under way are read: nothing can come to lie before them any more.
 */
export function findEventsAfter(
  db: Handle,
  { txid, seq }: Cursor,
  limit: number,
): Promise<RecordedEvent[]> {
  return db.all(eventsAfter, { txid, seq, limit });
}

const firstAfter = statement<Cursor>()((db, p, dialect) => {
  const events = db.selectFrom('events').select('created_at').limit(sql.lit(1));
  if (dialect === 'sqlite') return events.where('seq', '>', p('seq')).orderBy('seq');
  return events
    .where(sql<SqlBool>`(txid, seq) > (${p('txid')}::text::xid8, ${p('seq')}::bigint)`)
    .orderBy(sql`events.txid`)
    .orderBy('seq');
});

/** When the first event after a cursor was recorded, whether it can be read yet or not. */
export async function findFirstAfter(db: Handle, cursor: Cursor): Promise<number | undefined> {
  return (await db.first(firstAfter, cursor))?.created_at;
}

/** The end of the outbox, as a cursor: on PostgreSQL, before the oldest transaction under way. */
export async function endOfEvents(tx: Transaction): Promise<Cursor> {
  if (tx.dialect === 'sqlite') return { txid: '0', seq: await lastSeq(tx) };
  const { rows } = await sql<{
    txid: string;
  }>`select pg_snapshot_xmin(pg_current_snapshot())::text as txid`.execute(tx.kysely);
  return { txid: rows[0]?.txid ?? '0', seq: 0 };
}

/**
 * The present, as a text by which `isAfter` (reader.ts) tells an event: on SQLite the last event's
 * number, on PostgreSQL the snapshot, in which are all transactions that have committed by now.
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
