/**
 * The wait for an event. A run takes the oldest stored event that its job may take, or waits for the next
 * one. Both are decided while the name and key are locked, so an event that comes at the same time is
 * either found here or finds this wait. A timeout of 0 takes a stored event or none.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import {
  deadlineAfter,
  type WaitKindVerbs,
  type WaitResult,
} from '../../core/journal/wait-kinds.ts';
import { timestamp } from '../../kernel/clock.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { eventKeyCharsMax, isLongerThan } from '../../kernel/step-bounds.ts';
import { isCleanText } from '../../kernel/text.ts';
import { eventNamePattern } from './bounds.ts';
import { type EventAddress, lockAddress, type ReceivedEvent } from './received.store.ts';
import {
  advancePositions,
  findTakeable,
  forgetJobs,
  insertWait,
  recordTaken,
  removeWaits,
} from './waits.store.ts';

const namePattern = new RegExp(eventNamePattern);

/** The event for which a run waits. The deadline is no part of it. */
interface AwaitedEvent {
  readonly event: string;
  readonly key: string | null;
}

const nothing: WaitResult = { value: null };

/** Reads the payload of a run, which is hostile input. */
function read(
  { event, key = null, timeoutMs }: Readonly<Record<string, unknown>>,
  _job: unknown,
  now: number,
): { input: AwaitedEvent; dueAt: number } {
  if (typeof event !== 'string' || !namePattern.test(event)) {
    throw permanentError(
      'the event that a run waits for must be named by 1 to 200 letters, digits and . _ - : /',
    );
  }
  if (key !== null && !isKey(key)) {
    throw permanentError(`the key of an event must be text of 1 to ${eventKeyCharsMax} characters`);
  }
  return { input: { event, key }, dueAt: deadlineAfter(timeoutMs, now) };
}

function isKey(key: unknown): key is string {
  return (
    typeof key === 'string' &&
    key !== '' &&
    !isLongerThan(key, eventKeyCharsMax) &&
    isCleanText(key)
  );
}

async function begin(
  tx: Transaction,
  { job, n, input, dueAt }: Parameters<WaitKindVerbs['begin']>[1],
  now: number,
): Promise<WaitResult | null> {
  const { event, key } = input as AwaitedEvent;
  const address: EventAddress = { organization_id: job.organization_id, event, key: key ?? '' };
  await lockAddress(tx, address, 'wait');
  const found = await findTakeable(tx, address, job.id);
  if (found !== undefined) {
    await advancePositions(tx, [{ ...address, job_id: job.id, event_id: found.id }]);
    await recordTaken(tx, found);
    return { value: eventValue(found) };
  }
  if (dueAt <= now) return nothing;
  await insertWait(tx, { ...address, job_id: job.id, n });
  return null;
}

/** An event as a run gets it. */
export function eventValue({ id, event, key, data, created_at }: ReceivedEvent) {
  const value: unknown = JSON.parse(data);
  const received_at = timestamp(created_at);
  return { id, event, key: key === '' ? null : key, data: value, received_at };
}

async function expire(
  tx: Transaction,
  { job, n }: Parameters<WaitKindVerbs['expire']>[1],
): Promise<WaitResult> {
  await removeWaits(tx, [{ job_id: job.id, n }]);
  return nothing;
}

export const eventWaits: WaitKindVerbs = { read, begin, expire, abandon: forgetJobs };
