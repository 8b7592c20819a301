/**
 * Backlogs: the unread events of organizations that make more deliveries than their share. The shared
 * cursor skips the events of such an organization; a cursor of its own tracks how far they are
 * dispatched. Organizations with a backlog take turns, so none delays the others. A backlog ends when its
 * cursor has reached the shared one.
 */
import type { Handle, Transaction } from '../database/database.ts';
import {
  deleteCursor,
  deleteCursorsBelow,
  findCursor,
  findCursorsBelow,
  findEventsOf,
  findFirstAfter,
  findNamedCursors,
  insertCursor,
  setCursor,
  takeCursor,
} from './reader.store.ts';
import type { OutboxEvent, ReaderCursor } from './reader.ts';

/** Backlogs that one query reads. */
const backlogsMax = 1_000;

export interface Backlog {
  readonly organizationId: string;
  /** The last event that was handled. */
  readonly at: ReaderCursor;
}

const nameOf = (reader: string, organizationId: string) => `${reader}/${organizationId}`;

/** The given organizations that have a backlog. */
export async function withBacklog(
  tx: Transaction,
  reader: string,
  organizationIds: readonly string[],
): Promise<Set<string>> {
  const names = organizationIds.map((id) => nameOf(reader, id));
  const found = await findNamedCursors(tx, names);
  return new Set(found.map((name) => name.slice(reader.length + 1)));
}

/** Begins backlogs for organizations without one; the transaction has locked the reader's cursor. */
export async function beginBacklogs(
  tx: Transaction,
  reader: string,
  backlogs: readonly Backlog[],
): Promise<void> {
  for (const { organizationId, at } of backlogs) {
    await insertCursor(tx, nameOf(reader, organizationId), at);
  }
}

/** Ends all backlogs and drops their unread events. */
export const dropBacklogs = deleteCursorsBelow;

/** The organization with a backlog that comes after `after`; undefined without backlogs. */
export async function nextBacklog(
  db: Handle,
  reader: string,
  after: string,
): Promise<string | undefined> {
  const [next] = await findCursorsBelow(db, reader, nameOf(reader, after), 1);
  const [first] = next === undefined ? await findCursorsBelow(db, reader, '', 1) : [next];
  return first?.name.slice(reader.length + 1);
}

/**
 * Passes the next `limit` events of a backlog to `use`, which returns how many of them, in order, it has
 * handled. False when there is no such backlog, or another process is reading.
 */
export async function readBacklog(
  tx: Transaction,
  reader: string,
  organizationId: string,
  limit: number,
  use: (events: readonly OutboxEvent[]) => Promise<number>,
): Promise<boolean> {
  const end = await takeCursor(tx, reader);
  const name = nameOf(reader, organizationId);
  const at = end === undefined ? undefined : await findCursor(tx, name);
  if (end === undefined || at === undefined) return false;
  const events = await findEventsOf(tx, organizationId, at, end, limit);
  const read = events.length === 0 ? 0 : await use(events);
  const last = events[read - 1];
  if (read === events.length && events.length < limit) await deleteCursor(tx, name);
  else if (last !== undefined) await setCursor(tx, name, last);
  return true;
}

/** The oldest cursor of the first 1,000 backlogs. */
export async function furthestBehind(
  db: Handle,
  reader: string,
): Promise<ReaderCursor | undefined> {
  const rows = await findCursorsBelow(db, reader, '', backlogsMax);
  return rows.toSorted(byPlace)[0];
}

/** When the first event after that cursor was recorded. */
export const oldestBehind = findFirstAfter;

/** Compares cursors in the order of events. */
function byPlace(a: ReaderCursor, b: ReaderCursor): number {
  const apart = BigInt(a.txid) - BigInt(b.txid);
  return apart === 0n ? a.seq - b.seq : Number(apart > 0n) - Number(apart < 0n);
}
