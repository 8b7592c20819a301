/**
 * A PostgreSQL database that was restored from a dump into another server. Events are numbered by
 * their transactions (`events.txid`), and a server numbers its own: where the new one is behind the
 * old, new events would lie before the cursors and never be read. Here what is left to be read gets
 * numbers that are smaller than all that come.
 */
import { type Kysely, sql } from 'kysely';
import type { Patiently } from './migrate.ts';
import type { Tables } from './tables.ts';

/** Events that are renumbered in one transaction. */
const eventsMax = 20_000;
const lockName = sql.lit('skillwright restored');

/**
 * Renumbers the outbox where it is from another server; true when it was. To be called before
 * anything is written. Interrupted, it goes on at the next call.
 */
export async function adoptRestored(
  kysely: Kysely<Tables>,
  patiently: Patiently = (work) => work(kysely),
): Promise<boolean> {
  if (!(await isFromElsewhere(kysely))) return false;
  return await patiently((patient) => patient.connection().execute(adopt));
}

async function adopt(db: Kysely<Tables>): Promise<boolean> {
  await sql`select pg_advisory_lock(hashtext(${lockName}))`.execute(db);
  try {
    // Another process may have done it meanwhile.
    if (!(await isFromElsewhere(db))) return false;
    while ((await renumberRead(db)) === eventsMax);
    await db.transaction().execute(renumberUnread);
    return true;
  } finally {
    await sql`select pg_advisory_unlock(hashtext(${lockName}))`.execute(db);
  }
}

/** Where webhooks stand that wait for events. Those that came by a move from SQLite count otherwise. */
const places = sql`select active_since::pg_snapshot as place
  from (select distinct active_since from webhooks where active = 1 and active_since like '%:%') as texts`;

/** Whether anything is numbered by a transaction that this server has yet to see. */
async function isFromElsewhere(db: Kysely<Tables>): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`
    with present as (select pg_snapshot_xmax(pg_current_snapshot()) as unused)
    select coalesce((select txid from events order by txid desc, seq desc limit 1) >= unused, false)
      or exists (select from event_cursors where txid::xid8 >= unused)
      or exists (select from (${places}) as places where pg_snapshot_xmax(place) > unused) as found
    from present`.execute(db);
  return rows[0]?.found ?? false;
}

/**
 * An event is read when it lies before every cursor. Without an active webhook all events are read,
 * because the first webhook begins at the end of the outbox.
 */
const isRead = sql<boolean>`(
  not exists (select from webhooks where active = 1)
  or not exists (select from event_cursors where (events.txid, events.seq) > (txid::xid8, seq)))`;

async function renumberRead(db: Kysely<Tables>): Promise<number> {
  const { numAffectedRows } = await sql`
    update events set txid = '0' where seq in (
      select seq from events where txid > '0' and ${isRead} limit ${sql.lit(eventsMax)})`.execute(
    db,
  );
  return Number(numAffectedRows ?? 0);
}

/**
 * An unread event is numbered after how many of the places it is: from 1 on and without gaps, so that
 * few numbers are used up. A place becomes one that all events from some number on lie after.
 */
async function renumberUnread(db: Kysely<Tables>): Promise<void> {
  await sql`create temporary table places on commit drop as
    select place, row_number() over (order by pg_snapshot_xmax(place), pg_snapshot_xmin(place),
      (select count(*) from pg_snapshot_xip(place)) desc) as n
    from (${places}) as places`.execute(db);
  await sql`create temporary table unread on commit drop as
    select seq, dense_rank() over (order by passed) as txid, passed from (
      select seq, (select count(*) from places where not pg_visible_in_snapshot(txid, place)) as passed
      from events where not ${isRead}) as unread`.execute(db);
  await sql`update events set txid = unread.txid::text::xid8
    from unread where unread.seq = events.seq`.execute(db);
  await sql`update webhooks set active_since = start || ':' || start || ':' from (
      select place, 1 + (select count(distinct passed) from unread where passed < n) as start
      from places) as moved
    where active = 1 and active_since = place::text`.execute(db);
  await sql`update event_cursors set txid = '0',
    seq = (select coalesce(max(seq), 0) from events)`.execute(db);
}
