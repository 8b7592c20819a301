/**
 * Tells an event to the jobs that wait for it, each once: the oldest of its waits ends. Where more jobs wait
 * than one transaction should change, further transactions follow; a later event with the same name and key is
 * told after the earlier one. What a process that died has left untold, the background task tells.
 */
import type { Database, Transaction } from '../../adapters/database/database.ts';
import { type EndWaits, lockJobs } from '../../core/jobs/end-waits.ts';
import type { Clock } from '../../kernel/clock.ts';
import { eventValue } from './event-waits.ts';
import {
  type EventAddress,
  findUntold,
  lockAddress,
  markTold,
  type ReceivedEvent,
  untoldAddresses,
} from './received.store.ts';
import { advancePositions, findWaiting, removeWaits } from './waits.store.ts';

/** Jobs that one transaction tells, and bytes of the results that it records for them. */
const jobsMax = 500;
const bytesMax = 4 * 1024 * 1024;
/** Names and keys that one call of the background task looks at. */
const addressesMax = 100;
/** Sorts after every id. */
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

export interface TellDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly endWaits: EndWaits;
}

/** What one transaction has told. */
interface Told {
  /** Jobs that got the event. */
  readonly delivered: number;
  /** Whether no more jobs wait for it. */
  readonly isDone: boolean;
}

/** Who may take an event, and the bytes of its data. */
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
    const asked = { event_id: lastId, job_id: audience.job_id ?? '', limit: limitOf(audience) };
    const waiting = await findWaiting(tx, { ...audience, ...asked });
    await lockJobs(
      tx,
      waiting.map(({ job_id }) => job_id),
    );
  }
  await lockAddress(tx, audience, 'event');
}

/** Tells an event to as many waiting jobs as fit into one transaction. */
export async function tell(
  { endWaits }: Pick<TellDeps, 'endWaits'>,
  tx: Transaction,
  event: ReceivedEvent,
  now: number,
): Promise<Told> {
  const { organization_id, key, id } = event;
  const limit = limitOf({ ...event, bytes: Buffer.byteLength(event.data) });
  const wanted = { ...event, event_id: id, job_id: event.job_id ?? '', limit };
  const waiting = await findWaiting(tx, wanted);
  if (waiting.length === 0) return { delivered: 0, isDone: true };
  const result = { value: eventValue(event) };
  const ended = await endWaits(
    tx,
    waiting.map(({ job_id, n }) => ({ job_id, n, result })),
    now,
  );
  // These rows are not needed any more, also where the step has ended for another reason.
  await removeWaits(tx, waiting);
  const given = waiting.filter((_, i) => ended[i]);
  const address = { organization_id, event: event.event, key };
  await advancePositions(
    tx,
    given.map(({ job_id }) => ({ ...address, job_id, event_id: id })),
  );
  return { delivered: given.length, isDone: waiting.length < limit };
}

/** Tells the untold events of an address; how many jobs got `eventId`. */
export async function tellRest(
  deps: TellDeps,
  address: EventAddress,
  eventId: string | null = null,
): Promise<number> {
  let delivered = 0;
  for (;;) {
    const told = await deps.database.write((tx) => tellNext(deps, tx, address));
    if (told === null) return delivered;
    if (told.id === eventId) delivered += told.delivered;
  }
}

/** Goes on telling the oldest untold event of an address; null when there is none. */
async function tellNext(
  deps: TellDeps,
  tx: Transaction,
  address: EventAddress,
): Promise<(Told & { readonly id: string }) | null> {
  const ahead = await findUntold(tx, address);
  if (ahead === undefined) return null;
  await lockAudience(tx, { ...ahead, bytes: Buffer.byteLength(ahead.data) });
  const event = await findUntold(tx, address);
  if (event === undefined) return null;
  const told = await tell(deps, tx, event, deps.clock.now());
  if (told.isDone || told.delivered > 0) {
    await markTold(tx, {
      id: event.id,
      told: told.isDone ? 1 : 0,
      given: told.delivered > 0 ? 1 : 0,
    });
  }
  return { ...told, id: event.id };
}

/** Tells what processes have left untold. */
export async function tellUntold(deps: TellDeps): Promise<void> {
  for (const address of await untoldAddresses(deps.database.read, addressesMax)) {
    await tellRest(deps, address);
  }
}
