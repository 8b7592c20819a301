/**
 * Reads the outbox by cursor: a reader has a name and sees every event once and in order. Its cursor
 * moves in the transaction that records the results of the events, so a crash neither loses nor repeats
 * an event, and only one process reads at a time.
 */
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import {
  endOfOutbox,
  findEventsAfter,
  holdCursor,
  type OutboxEvent,
  oldestBehind,
  presentPlace,
  readerCursor,
  setCursor,
  takeCursor,
} from './reader-queries.ts';

/** The name of the reader that makes deliveries for all webhooks. */
export const webhooksReader = 'webhooks';

/** A place in the outbox, with which `isAfter` compares events. */
export type Place = string;

/** Whether the reader has unread events. Cheap. */
export async function hasUnread(db: Handle, reader: string): Promise<boolean> {
  const cursor = await readerCursor(db, reader);
  return cursor !== undefined && (await findEventsAfter(db, cursor, 1)).length > 0;
}

/** When the oldest unread event of a reader was recorded; undefined without unread events. */
export async function oldestUnread(db: Handle, reader: string): Promise<number | undefined> {
  const cursor = await readerCursor(db, reader);
  return cursor === undefined ? undefined : await oldestBehind(db, cursor);
}

/**
 * Passes the next `limit` events to `use`, which returns how many of them, in order, it has handled; the
 * cursor moves past those. False when there are no events, another process is reading, or the reader was
 * never started.
 */
export async function readEvents(
  tx: Transaction,
  reader: string,
  limit: number,
  use: (events: readonly OutboxEvent[]) => Promise<number>,
): Promise<boolean> {
  const cursor = await takeCursor(tx, reader);
  if (cursor === undefined) return false;
  const events = await findEventsAfter(tx, cursor, limit);
  if (events.length === 0) return false;
  const last = events[(await use(events)) - 1];
  if (last === undefined) return false;
  await setCursor(tx, reader, last);
  return true;
}

/**
 * The current place in the outbox, for a subscriber that gets the events from now on. Locks the reader's
 * cursor until the transaction ends. When `isFirst` says that there is no other subscriber, the cursor
 * moves to the end, so the reader skips all earlier events.
 */
export async function joinReader(
  tx: Transaction,
  reader: string,
  isFirst: () => Promise<boolean>,
): Promise<Place> {
  await holdCursor(tx, reader);
  if (await isFirst()) await setCursor(tx, reader, await endOfOutbox(tx));
  return presentPlace(tx);
}

/** Whether an event was committed after a place was taken. */
export function isAfter(event: Pick<OutboxEvent, 'txid' | 'seq'>, place: Place): boolean {
  const [xmin = '', xmax, running = ''] = place.split(':');
  if (xmax === undefined) return event.seq > Number(place);
  const txid = BigInt(event.txid);
  if (txid < BigInt(xmin)) return false;
  return txid >= BigInt(xmax) || running.split(',').includes(event.txid);
}
