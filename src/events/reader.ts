/**
 * Reads the outbox by cursor: each reader, by its name, sees every event once and in order. Its
 * cursor moves in the transaction that records what was made of the events, so a crash between the
 * two neither loses nor doubles any, and one process reads at a time.
 */
import type { Handle, Transaction } from '../database/database.ts';
import {
  type Cursor,
  endOfEvents,
  findCursor,
  findEventsAfter,
  findFirstAfter,
  holdCursor,
  presentPlace,
  type RecordedEvent,
  setCursor,
  takeCursor,
} from './reader.store.ts';

export type OutboxEvent = RecordedEvent;
export type ReaderCursor = Cursor;

/** How far a reader has come; undefined when it was never started. */
export function readerCursor(db: Handle, reader: string): Promise<Cursor | undefined> {
  return findCursor(db, reader);
}

/** A place in the outbox: what `isAfter` compares events with. */
export type Place = string;

/** Whether there is anything for the reader. Cheap. */
export async function hasNews(db: Handle, reader: string): Promise<boolean> {
  const cursor = await findCursor(db, reader);
  return cursor !== undefined && (await findEventsAfter(db, cursor, 1)).length > 0;
}

/** When the oldest event that a reader has not read was recorded; undefined when it has read all. */
export async function oldestUnread(db: Handle, reader: string): Promise<number | undefined> {
  const cursor = await findCursor(db, reader);
  return cursor === undefined ? undefined : await findFirstAfter(db, cursor);
}

/**
 * Hands the next `limit` events to `use`, which says how many of them, from the first on, it has
 * dealt with: the cursor moves behind those. False when there was none, another process reads just
 * now, or the reader was never started.
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
 * The present in the outbox, for somebody who is to get what happens from now on. Keeps the reader
 * waiting until the transaction ends. `isFirst` tells whether nobody else is there to read for: the
 * reader then leaves out everything that has happened.
 */
export async function joinReader(
  tx: Transaction,
  reader: string,
  isFirst: () => Promise<boolean>,
): Promise<Place> {
  await holdCursor(tx, reader);
  if (await isFirst()) await setCursor(tx, reader, await endOfEvents(tx));
  return presentPlace(tx);
}

/** Whether an event was committed after the moment that a place stands for. */
export function isAfter(event: Pick<OutboxEvent, 'txid' | 'seq'>, place: Place): boolean {
  const [xmin = '', xmax, running = ''] = place.split(':');
  if (xmax === undefined) return event.seq > Number(place);
  const txid = BigInt(event.txid);
  if (txid < BigInt(xmin)) return false;
  return txid >= BigInt(xmax) || running.split(',').includes(event.txid);
}
