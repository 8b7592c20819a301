/**
 * The wait for an approval: a run asks a person and waits. The question is a row of its own, inserted in the
 * transaction that records the wait and closed in the one that ends it. So each wait makes one question, and a
 * repeated run, which finds its wait on record, makes no other.
 */
import { createHash } from 'node:crypto';
import type { Transaction } from '../../adapters/database/database.ts';
import { appendEvents } from '../../core/events/outbox.ts';
import {
  deadlineAfter,
  type WaitKindVerbs,
  type WaitResult,
} from '../../core/journal/wait-kinds.ts';
import { type Form, readForm } from '../../kernel/form.ts';
import { newId } from '../../kernel/ids.ts';
import { isObject, type Json } from '../../kernel/json.ts';
import { longTextMax } from '../../kernel/long-text.ts';
import { permanentError } from '../../kernel/permanent-error.ts';
import { isLongerThan, titleCharsMax } from '../../kernel/step-bounds.ts';
import { canonicalJson, isCleanText, jsonTextFault } from '../../kernel/text.ts';
import { decidedEvent, decisionOf, requestedEvent } from './approval-views.ts';
import {
  type ApprovalRow,
  cancelApprovals,
  endApproval,
  insertApproval,
} from './approvals.store.ts';

/** A question to a person. The deadline is no part of it. */
interface Question {
  readonly title: string;
  readonly details: Json;
  /** The form that the decision fills in; absent without one. */
  readonly fields?: Form;
}

/** Reads the question of a run, which is hostile input. */
function read(
  payload: Readonly<Json>,
  _job: unknown,
  now: number,
): { input: Question; dueAt: number } {
  const { title, timeoutMs } = payload;
  const details = payload['details'] ?? {};
  if (typeof title !== 'string' || title === '' || isLongerThan(title, titleCharsMax)) {
    throw permanentError(
      `the title of an approval must be text of 1 to ${titleCharsMax} characters`,
    );
  }
  if (!isCleanText(title)) {
    throw permanentError('the title of an approval contains a NUL character or a lone surrogate');
  }
  if (!isObject(details)) throw permanentError('the details of an approval must be a JSON object');
  const json = JSON.stringify(details);
  if (Buffer.byteLength(json) > longTextMax) {
    throw permanentError(
      `the details of an approval must be at most ${longTextMax / 1024} KiB of JSON`,
    );
  }
  const fault = jsonTextFault(json);
  if (fault !== null) throw permanentError(`the JSON of the details of an approval ${fault}`);
  const fields = readFields(payload['fields']);
  const input = { title, details, ...(fields !== undefined && { fields }) };
  return { input, dueAt: deadlineAfter(timeoutMs, now) };
}

function readFields(value: unknown): Form | undefined {
  if (value === undefined || value === null) return undefined;
  const read = readForm(value);
  if ('fault' in read) throw permanentError(`the form of an approval ${read.fault}`);
  return read.form;
}

async function begin(
  tx: Transaction,
  { job, n, name, input, dueAt }: Parameters<WaitKindVerbs['begin']>[1],
  now: number,
): Promise<null> {
  const { title, details, fields } = input as Question;
  const row: ApprovalRow = {
    id: newId(),
    organization_id: job.organization_id,
    agent_id: job.agent_id,
    conversation_id: job.conversation_id,
    job_id: job.id,
    n,
    step: name,
    title,
    details: JSON.stringify(details),
    digest: createHash('sha256').update(canonicalJson(input)).digest('hex'),
    status: 'pending',
    requested_at: now,
    expires_at: dueAt,
    decided_at: null,
    decided_by: null,
    decided_by_kind: null,
    decided_by_key: null,
    reason: null,
    fields: fields === undefined ? null : JSON.stringify(fields),
    answer: null,
  };
  await insertApproval(tx, row);
  await appendEvents(tx, [requestedEvent(row)], now);
  return null;
}

/** At the deadline the question counts as rejected. */
async function expire(
  tx: Transaction,
  { job, n }: Parameters<WaitKindVerbs['expire']>[1],
  now: number,
): Promise<WaitResult> {
  const step = { job_id: job.id, n };
  const row = await endApproval(tx, step, {
    status: 'expired',
    decided_at: now,
    decided_by: null,
    decided_by_kind: null,
    decided_by_key: null,
    reason: null,
    answer: null,
  });
  if (row !== undefined) await appendEvents(tx, [decidedEvent(row)], now);
  return { value: decisionOf(false, null, 'expired') };
}

/** Closes the questions of jobs that have ended. */
async function abandon(tx: Transaction, jobIds: readonly string[], now: number): Promise<void> {
  const rows = await cancelApprovals(tx, jobIds, now);
  await appendEvents(tx, rows.map(decidedEvent), now);
}

export const approvalWaits: WaitKindVerbs = { read, begin, expire, abandon };
