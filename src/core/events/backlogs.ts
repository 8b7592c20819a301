/**
 * Backlogs: the unread events of organizations that make more deliveries than their share. The shared
 * cursor skips the events of such an organization; a cursor of its own tracks how far they are
 * dispatched. Organizations with a backlog take turns, so none delays the others. A backlog ends when its
 * cursor has reached the shared one.
 */
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { OutboxEvent, ReaderCursor } from './reader-queries.ts';
import {
  deleteCursor,
  findEventsOf,
  findNamedCursors,
  findNextBelow,
  insertCursor,
  readerCursor,
  setCursor,
  takeCursor,
} from './reader-queries.ts';

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

/** The organization with a backlog that comes after `after`; undefined without backlogs. */
export async function nextBacklog(
  db: Handle,
  reader: string,
  after: string,
): Promise<string | undefined> {
  const next =
    (await findNextBelow(db, reader, nameOf(reader, after))) ??
    (await findNextBelow(db, reader, ''));
  return next?.slice(reader.length + 1);
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
  const at = end === undefined ? undefined : await readerCursor(tx, name);
  if (end === undefined || at === undefined) return false;
  const events = await findEventsOf(tx, organizationId, at, end, limit);
  const read = events.length === 0 ? 0 : await use(events);
  const last = events[read - 1];
  if (read === events.length && events.length < limit) await deleteCursor(tx, name);
  else if (last !== undefined) await setCursor(tx, name, last);
  return true;
}
