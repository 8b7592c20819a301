/**
 * Erasure of a user in what webhooks read and were sent: events of the outbox and bodies of deliveries. The events of
 * an organization may be millions, so the position up to which they were read is kept for a repetition.
 */
import type { Database } from '../../adapters/database/database.ts';
import { erasedData, erasedEnd } from '../../adapters/database/erased-data.ts';
import { webhooksReader } from '../../core/events/reader.ts';
import { waitForReader } from '../../core/events/reader-queries.ts';
import {
  beginProgress,
  deliveriesAbout,
  type EventsCursor,
  endProgress,
  eventsAfter,
  keepProgress,
  redactDelivery,
  redactEvent,
} from './erased-events.store.ts';
import { erasedAmong, type OfUser } from './user-data.store.ts';

/** Rows of one transaction, and events read at a time. */
const deliveriesMax = 100;
const eventsMax = 1_000;
/** Pages without a find after which the place is kept. */
const keptEvery = 20;

interface EventData {
  readonly job_id?: string | null;
  readonly conversation_id?: string;
  readonly user_id?: string;
  /** Where an erasure was interrupted. */
  readonly erased?: boolean;
}

/** Erases what deliveries about jobs or conversations say, until `isLate`: whether nothing is left. */
export async function eraseDeliveries(
  database: Database,
  subjects: readonly string[],
  isLate: () => boolean,
): Promise<boolean> {
  while (!isLate()) {
    const found = await database.write(async (tx) => {
      const rows = await deliveriesAbout(tx, subjects, deliveriesMax);
      for (const { id, body } of rows) {
        const { data: _, ...head } = JSON.parse(body) as Record<string, unknown>;
        const erased = `${JSON.stringify(head).slice(0, -1)}${erasedEnd}`;
        await redactDelivery(tx, id, erased);
      }
      return rows.length;
    });
    // Not before nothing is found: a redelivery may have been made of one of them, for which its lock was waited.
    if (found === 0) return true;
  }
  return false;
}

/**
 * Of the events that webhooks read, erases those about erased jobs, and about conversations of the user, until `isLate`:
 * whether all were read.
 */
export async function eraseEvents(
  database: Database,
  user: OfUser,
  isLate: () => boolean,
): Promise<boolean> {
  let kept = await database.write((tx) => beginProgress(tx, user));
  let after = kept;
  for (let pages = 1; ; pages++) {
    const rows = await eventsAfter(database.read, user.organizationId, after, eventsMax);
    const last = rows.at(-1);
    if (last === undefined) return true;
    if (!(await erasePage(database, user, rows, isLate))) return false;
    const reached = { txid: last.txid, seq: Number(last.seq) };
    after = reached;
    const stops = isLate();
    if (stops || rows.length < eventsMax || pages % keptEvery === 0) {
      await database.write((tx) => keepProgress(tx, user, kept, reached));
      kept = reached;
    }
    if (stops) return false;
  }
}

/** Forgets the position in the events, when nothing of the user is left. */
export function endErasure(database: Database, user: OfUser): Promise<void> {
  return database.write((tx) => endProgress(tx, user));
}

/**
 * In steps, so that a repetition after a crash finds what is left: the events keep what they are about until their
 * deliveries are erased. Whether they are, or it was too late.
 */
async function erasePage(
  database: Database,
  user: OfUser,
  rows: readonly ({ readonly data: string } & EventsCursor)[],
  isLate: () => boolean,
): Promise<boolean> {
  const events = rows.map(({ seq, data }) => ({ seq, ...(JSON.parse(data) as EventData) }));
  const jobs = events.flatMap(({ job_id }) => job_id ?? []);
  const gone = await erasedAmong(database.read, [...new Set(jobs)]);
  const about = events.filter(
    ({ job_id, user_id, erased }) =>
      erased === true || user_id === user.userId || gone.has(job_id ?? ''),
  );
  if (about.length === 0) return true;
  await database.write(async (tx) => {
    for (const { seq, job_id, conversation_id } of about) {
      await redactEvent(tx, Number(seq), JSON.stringify({ erased: true, job_id, conversation_id }));
    }
  });
  // A dispatcher may have read these events before, and commits their deliveries later.
  await database.write((tx) => waitForReader(tx, webhooksReader));
  // Also finds the deliveries that an interrupted erasure has left.
  const subjects = about.flatMap(({ job_id, conversation_id }) => job_id ?? conversation_id ?? []);
  if (!(await eraseDeliveries(database, [...new Set(subjects)], isLate))) return false;
  await database.write(async (tx) => {
    for (const { seq } of about) await redactEvent(tx, Number(seq), erasedData);
  });
  return true;
}
