/**
 * Events from outside. `send` records an event and hands it over to the jobs that wait for it, in one transaction, and
 * returns after the commit. It stores the event if jobs that were accepted before it may wait for it later. Equal
 * requests with one Idempotency-Key make one event.
 */
import { hash } from 'node:crypto';
import type { Database, Transaction } from '../../adapters/database/database.ts';
import type { Context } from '../../core/context/context.ts';
import type { WaitEnds } from '../../core/jobs/end-waits.ts';
import { idempotencyMs } from '../../core/jobs/idempotency.ts';
import type { Clock } from '../../kernel/clock.ts';
import { invalid, notFound, PlatformError } from '../../kernel/errors.ts';
import { continueAfter, isId, newId } from '../../kernel/ids.ts';
import { canonicalJson } from '../../kernel/text.ts';
import { eventDataBytesMax, storedBytesMax, storedMax, takenKept, untakenMax } from './bounds.ts';
import { EventHandover, lockAudience } from './handover.ts';
import {
  describeKeyedEvent,
  type EventKeyRow,
  findEventKey,
  takeEventKey,
} from './idempotency.store.ts';
import {
  type AddressFacts,
  addressFacts,
  type EventAddress,
  hasJobEnded,
  insertEvent,
  type ReceivedEvent,
  removeTakenEvents,
} from './received.store.ts';
import { removeEventsOfAddress } from './untakeable.store.ts';
import { clearOrganization } from './untakeable.ts';

/** The sender of an event. */
export interface Sender {
  readonly organizationId: string;
  /** The id of the API key or of the trigger: each has Idempotency-Keys of its own. */
  readonly owner: string;
  readonly idempotencyKey?: string | undefined;
  /** Equal for equal requests; by default of the event. */
  readonly fingerprint?: string;
}

/** An event of a request. */
export interface SentEvent {
  readonly event: string;
  readonly key: string | null;
  /** The only job that may take it. */
  readonly jobId: string | null;
  readonly data: unknown;
}

/** The response to the sender. */
export interface SendReceipt {
  readonly eventId: string;
  /** Jobs that waited for it. */
  readonly delivered: number;
  /** Whether an earlier equal request has made it. */
  readonly isReplay: boolean;
}

export class RunEvents {
  readonly database: Database;
  readonly clock: Clock;
  readonly handover: EventHandover;

  constructor(context: Context, waitEnds: WaitEnds) {
    this.database = context.database;
    this.clock = context.clock;
    this.handover = new EventHandover(context, waitEnds);
  }

  /**
   * Throws `400` for data above its size, `404` for a job that is not the organization's, `409` for one that
   * has ended and when a bound of the stored events is reached, `422` for a key of another request.
   */
  async send(sender: Sender, sent: SentEvent): Promise<SendReceipt> {
    const { database, handover } = this;
    const data = JSON.stringify(sent.data ?? null);
    if (Buffer.byteLength(data) > eventDataBytesMax) {
      throw invalid('data', `must be at most ${eventDataBytesMax / 1024} KiB of JSON`);
    }
    const { jobId } = sent;
    if (jobId !== null && !isId(jobId)) throw notFound('Job');
    const { keyRow, isDone, ...receipt } = await database.write((tx) =>
      record(this, tx, sender, { ...sent, data }),
    );
    if (isDone) return receipt;
    const { eventId } = receipt;
    const later = await handover.handOverAddress(addressOf(sender, sent), eventId);
    const delivered = receipt.delivered + later;
    if (keyRow !== undefined) {
      const described = { ...keyRow, event_id: eventId, delivered };
      await database.write((tx) => describeKeyedEvent(tx, described));
    }
    return { ...receipt, delivered };
  }

  /** The receipt of an earlier equal request with the same key and fingerprint. */
  async findReceipt({
    owner,
    idempotencyKey,
    fingerprint,
  }: Sender): Promise<SendReceipt | undefined> {
    if (idempotencyKey === undefined) return undefined;
    const key = { owner, idempotency_key: idempotencyKey };
    const found = await findEventKey(this.database.read, key);
    if (found === undefined || found.fingerprint !== fingerprint) return undefined;
    if (found.created_at < this.clock.now() - idempotencyMs) return undefined;
    return { eventId: found.event_id, delivered: found.delivered, isReplay: true };
  }
}

/** A receipt, and whether all jobs that waited have got the event. */
interface Recorded extends SendReceipt {
  readonly keyRow: EventKeyRow | undefined;
  readonly isDone: boolean;
}

async function record(
  { clock, handover }: RunEvents,
  tx: Transaction,
  sender: Sender,
  sent: SentText,
): Promise<Recorded> {
  const now = clock.now();
  const keyRow = keyRowOf(sender, sent, now);
  const earlier = keyRow && (await takeEventKey(tx, keyRow, now - idempotencyMs));
  if (earlier) return repeated(earlier, keyRow as EventKeyRow);
  const { jobId, data } = sent;
  if (jobId !== null) await requireUnended(tx, sender.organizationId, jobId);
  const address = addressOf(sender, sent);
  await lockAudience(tx, { ...address, job_id: jobId, bytes: Buffer.byteLength(data) });
  const known = await addressFacts(tx, address, untakenMax, takenKept);
  const id = idAfter(known);
  const event = { ...address, id, job_id: jobId, taken: 0, told: 0, created_at: now, data };
  const { delivered, isDone } = known.isBehind
    ? { delivered: 0, isDone: false }
    : await handover.handOver(tx, event, now);
  const isTaken = delivered > 0;
  // No other job may take it.
  const isOver = isTaken && jobId !== null;
  // A job that is not recorded yet was accepted later.
  const mayBeTakenLater = jobId !== null || known.isAnyUnended;
  const isKept = !isOver && (isTaken || !isDone || mayBeTakenLater);
  // Deletions come first: they lock the first row of the totals.
  if (known.surplus !== null) await removeTakenEvents(tx, address, known.surplus);
  if (isKept) {
    const row = { ...event, taken: isTaken ? 1 : 0, told: isDone ? 1 : 0 };
    await requireSpace(tx, row, known);
    await insertEvent(tx, row);
  }
  if (keyRow) await describeKeyedEvent(tx, { ...keyRow, event_id: id, delivered });
  return { eventId: id, delivered, isReplay: false, keyRow, isDone: isDone || isOver };
}

/** No job takes an event after its end, so such an event would only count towards the bound. */
async function requireUnended(tx: Transaction, organizationId: string, jobId: string) {
  const hasEnded = await hasJobEnded(tx, organizationId, jobId);
  if (hasEnded === undefined) throw notFound('Job');
  if (hasEnded) throw new PlatformError('conflict', 'The job has ended and takes no more events');
}

/** Throws `409` where a bound is reached, even after events that no job can take any more are deleted. */
async function requireSpace(
  tx: Transaction,
  event: ReceivedEvent,
  known: AddressFacts,
): Promise<void> {
  if (refusal(event, known) === null) return;
  await removeEventsOfAddress(tx, event);
  if (isFull(event, known)) await clearOrganization(tx, event.organization_id);
  const refused = refusal(event, await addressFacts(tx, event, untakenMax, takenKept));
  if (refused !== null) throw refused;
}

function refusal(event: ReceivedEvent, known: AddressFacts): PlatformError | null {
  if (event.taken === 0 && known.untaken >= untakenMax) return tooMany(event);
  return isFull(event, known) ? tooManyInAll() : null;
}

function isFull({ data }: ReceivedEvent, { stored }: AddressFacts): boolean {
  return stored.events >= storedMax || stored.bytes + Buffer.byteLength(data) > storedBytesMax;
}

type SentText = SentEvent & { readonly data: string };

const addressOf = ({ organizationId }: Sender, { event, key }: SentEvent): EventAddress => ({
  organization_id: organizationId,
  event,
  key: key ?? '',
});

/**
 * An id that sorts after those of the organization's jobs, which may all take the event, and after those
 * of the address's events, which were recorded before it. Processes' clocks differ by some milliseconds.
 */
function idAfter({ newest }: AddressFacts): string {
  for (const id of newest) continueAfter(id);
  return newId();
}

function keyRowOf(
  { owner, idempotencyKey, fingerprint: given }: Sender,
  { event, key, jobId, data }: SentText,
  now: number,
): EventKeyRow | undefined {
  if (idempotencyKey === undefined) return undefined;
  const fingerprint = given ?? hash('sha256', canonicalJson([event, key, jobId, JSON.parse(data)]));
  const row = { owner, idempotency_key: idempotencyKey, fingerprint };
  return { ...row, event_id: '', delivered: 0, created_at: now };
}

function repeated(earlier: EventKeyRow, keyRow: EventKeyRow): Recorded {
  if (earlier.fingerprint !== keyRow.fingerprint) {
    throw new PlatformError(
      'idempotency_key_reused',
      'This Idempotency-Key was used for another event within the last 24 hours',
    );
  }
  const { event_id: eventId, delivered } = earlier;
  return { eventId, delivered, isReplay: true, keyRow, isDone: true };
}

function tooMany({ event, key }: EventAddress): PlatformError {
  const count = untakenMax.toLocaleString('en-US');
  const named = key === '' ? `${event} without a key` : `${event} with this key`;
  return new PlatformError(
    'conflict',
    `${count} events ${named} have not been taken by any run, which is as many as are kept: ` +
      'send this one after a run has taken some',
  );
}

function tooManyInAll(): PlatformError {
  const count = storedMax.toLocaleString('en-US');
  return new PlatformError(
    'conflict',
    `At most ${count} events with ${storedBytesMax / 1024 / 1024} MiB of data are stored for an organization: ` +
      'send this one after runs have taken some, or after the jobs that may take them have ended',
  );
}
