/**
 * Hands an event over to the jobs that wait for it, once to each: the oldest of its waits ends. Where more jobs wait
 * than one transaction should change, further transactions follow; a later event with the same name and key follows
 * the earlier one. The background task hands over the pending events of processes that died.
 */
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { Context } from '../../core/context/context.ts';
import { lockJobs, type WaitEnds } from '../../core/jobs/end-waits.ts';
import type { Clock } from '../../kernel/clock.ts';
import { eventValue } from './event-waits.ts';
import {
  type EventAddress,
  findPendingEvent,
  listPendingAddresses,
  lockAddress,
  type ReceivedEvent,
  recordHandover,
} from './received.store.ts';
import { advancePositions, findWaiting, removeWaits } from './waits.store.ts';

/** Jobs that get an event in one transaction, and bytes of the results that it records for them. */
const jobsMax = 500;
const bytesMax = 4 * 1024 * 1024;
/** Names and keys whose events one run of the background task hands over. */
const addressesMax = 100;
/** Sorts after every id. */
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The outcome of one transaction. */
interface HandedOver {
  /** Jobs that got the event. */
  readonly delivered: number;
  /** Whether no more jobs wait for it. */
  readonly isDone: boolean;
}

/** The jobs that may take an event, and the bytes of its data. */
type Audience = EventAddress & Pick<ReceivedEvent, 'job_id'> & { readonly bytes: number };

const limitOf = ({ bytes }: Audience) =>
  Math.max(1, Math.min(jobsMax, Math.floor(bytesMax / Math.max(1, bytes))));

/**
 * Locks the jobs that wait for an event, then its name and key. A job that begins to wait in between is
 * locked by `endWaits` after that; should two transactions wait for each other then, the database runs one
 * of them again.
 */
export async function lockAudience(tx: Transaction, audience: Audience): Promise<void> {
  if (tx.dialect === 'postgres') {
    const any = { event_id: lastId, job_id: audience.job_id ?? '', limit: limitOf(audience) };
    const waiting = await findWaiting(tx, { ...audience, ...any });
    await lockJobs(
      tx,
      waiting.map(({ job_id }) => job_id),
    );
  }
  await lockAddress(tx, audience, 'event');
}

export class EventHandover {
  readonly database: Database;
  readonly clock: Clock;
  readonly waitEnds: WaitEnds;

  constructor({ database, clock }: Context, waitEnds: WaitEnds) {
    this.database = database;
    this.clock = clock;
    this.waitEnds = waitEnds;
  }

  /** Hands an event over to as many waiting jobs as fit into one transaction. */
  async handOver(tx: Transaction, event: ReceivedEvent, now: number): Promise<HandedOver> {
    const { organization_id, key, id } = event;
    const limit = limitOf({ ...event, bytes: Buffer.byteLength(event.data) });
    const audience = { ...event, event_id: id, job_id: event.job_id ?? '', limit };
    const waiting = await findWaiting(tx, audience);
    if (waiting.length === 0) return { delivered: 0, isDone: true };
    const result = { value: eventValue(event) };
    const ended = await this.waitEnds.endWaits(
      tx,
      waiting.map(({ job_id, n }) => ({ job_id, n, result })),
      now,
    );
    // These rows are not needed any more, also where the step has ended for another reason.
    await removeWaits(tx, waiting);
    const takers = waiting.filter((_, i) => ended[i]);
    const address = { organization_id, event: event.event, key };
    await advancePositions(
      tx,
      takers.map(({ job_id }) => ({ ...address, job_id, event_id: id })),
    );
    return { delivered: takers.length, isDone: waiting.length < limit };
  }

  /** Hands over the pending events of an address; how many jobs got `eventId`. */
  async handOverAddress(address: EventAddress, eventId: string | null = null): Promise<number> {
    let delivered = 0;
    for (;;) {
      const next = await this.database.write((tx) => this.#handOverOldest(tx, address));
      if (next === null) return delivered;
      if (next.id === eventId) delivered += next.delivered;
    }
  }

  /** Goes on with the oldest pending event of an address; null when there is none. */
  async #handOverOldest(
    tx: Transaction,
    address: EventAddress,
  ): Promise<(HandedOver & { readonly id: string }) | null> {
    const ahead = await findPendingEvent(tx, address);
    if (ahead === undefined) return null;
    await lockAudience(tx, { ...ahead, bytes: Buffer.byteLength(ahead.data) });
    const event = await findPendingEvent(tx, address);
    if (event === undefined) return null;
    const { delivered, isDone } = await this.handOver(tx, event, this.clock.now());
    const isTaken = delivered > 0;
    if (isDone || isTaken) await recordHandover(tx, event.id, { isDone, isTaken });
    return { delivered, isDone, id: event.id };
  }

  /** Hands over the events that other processes have left pending. */
  async handOverAll(): Promise<void> {
    for (const address of await listPendingAddresses(this.database.read, addressesMax)) {
      await this.handOverAddress(address);
    }
  }
}
