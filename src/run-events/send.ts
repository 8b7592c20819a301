/**
 * Send: records an event from outside. The caller is answered after the commit. The event is stored for
 * the runs of its organization that may wait for it later: those of jobs that were accepted before it.
 * Equal requests with one Idempotency-Key make one event.
 */
import { hash } from 'node:crypto';
import type { Database, Transaction } from '../database/database.ts';
import { idempotencyMs } from '../jobs/idempotency.ts';
import { bind } from '../kernel/bind.ts';
import type { Clock } from '../kernel/clock.ts';
import { invalid, notFound, PlatformError } from '../kernel/errors.ts';
import { continueAfter, isId, newId } from '../kernel/ids.ts';
import { canonicalJson } from '../kernel/text.ts';
import { eventDataBytesMax } from './bounds.ts';
import { describeKeyedEvent, type EventKeyRow, takeEventKey } from './idempotency.store.ts';
import {
  type AddressFacts,
  addressFacts,
  type EventAddress,
  hasJob,
  insertEvent,
  lockAddress,
  removeTakenEvents,
} from './received.store.ts';

/** Events of an address that no run has taken, and those kept of the ones that runs have taken. */
const untakenMax = 1_000;
const takenKept = 1_000;

/** Who sends an event. */
export interface Sender {
  readonly organizationId: string;
  /** The id of the API key or of the trigger: each has Idempotency-Keys of its own. */
  readonly owner: string;
  readonly idempotencyKey?: string | undefined;
}

/** An event as it is sent. */
export interface SentEvent {
  readonly event: string;
  readonly key: string | null;
  /** The only job that may take it. */
  readonly jobId: string | null;
  readonly data: unknown;
}

/** What the sender is told. */
export interface SendReceipt {
  readonly eventId: string;
  /** Jobs that waited for it. */
  readonly delivered: number;
  /** Whether an earlier equal request has made it. */
  readonly isReplay: boolean;
}

export interface SendDeps {
  readonly database: Database;
  readonly clock: Clock;
}

export type RunEvents = ReturnType<typeof createRunEvents>;

export function createRunEvents(deps: SendDeps) {
  return bind(deps, { send });
}

/**
 * Throws `400` for data above its size, `404` for a job that is not the organization's, `409` when too
 * many events with this name and key have not been taken, `422` for a key of another request.
 */
async function send(deps: SendDeps, sender: Sender, sent: SentEvent): Promise<SendReceipt> {
  const data = JSON.stringify(sent.data ?? null);
  if (Buffer.byteLength(data) > eventDataBytesMax) {
    throw invalid('data', `must be at most ${eventDataBytesMax / 1024} KiB of JSON`);
  }
  const { jobId } = sent;
  if (jobId !== null && !isId(jobId)) throw notFound('Job');
  return deps.database.write((tx) => record(deps, tx, sender, { ...sent, data }));
}

async function record(
  { clock }: SendDeps,
  tx: Transaction,
  sender: Sender,
  sent: SentEvent & { readonly data: string },
): Promise<SendReceipt> {
  const now = clock.now();
  const keyRow = keyRowOf(sender, sent, now);
  const earlier = keyRow && (await takeEventKey(tx, keyRow, now - idempotencyMs));
  if (earlier) return repeated(earlier, keyRow as EventKeyRow);
  const { jobId } = sent;
  const { organizationId } = sender;
  if (jobId !== null && !(await hasJob(tx, organizationId, jobId))) throw notFound('Job');
  const address = { organization_id: organizationId, event: sent.event, key: sent.key ?? '' };
  await lockAddress(tx, address, 'event');
  const known = await addressFacts(tx, address, untakenMax, takenKept);
  if (known.untaken >= untakenMax) throw tooMany(address);
  const id = idAfter(known);
  const row = { ...address, id, job_id: jobId, taken: 0, told: 1, created_at: now };
  await insertEvent(tx, { ...row, data: sent.data });
  if (known.surplus !== null) await removeTakenEvents(tx, address, known.surplus);
  if (keyRow) await describeKeyedEvent(tx, { ...keyRow, event_id: id, delivered: 0 });
  return { eventId: id, delivered: 0, isReplay: false };
}

/**
 * An id that sorts after those of the organization's jobs, which may all take the event, and after those
 * of the address's events, which were recorded before it. Processes' clocks differ by some milliseconds.
 */
function idAfter({ newest }: AddressFacts): string {
  for (const id of newest) continueAfter(id);
  return newId();
}

function keyRowOf(
  { owner, idempotencyKey }: Sender,
  { event, key, jobId, data }: SentEvent & { readonly data: string },
  now: number,
): EventKeyRow | undefined {
  if (idempotencyKey === undefined) return undefined;
  const fingerprint = hash('sha256', canonicalJson([event, key, jobId, JSON.parse(data)]));
  const row = { owner, idempotency_key: idempotencyKey, fingerprint };
  return { ...row, event_id: '', delivered: 0, created_at: now };
}

function repeated(earlier: EventKeyRow, { fingerprint }: EventKeyRow): SendReceipt {
  if (earlier.fingerprint !== fingerprint) {
    throw new PlatformError(
      'idempotency_key_reused',
      'This Idempotency-Key was used for another event within the last 24 hours',
    );
  }
  return { eventId: earlier.event_id, delivered: earlier.delivered, isReplay: true };
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
