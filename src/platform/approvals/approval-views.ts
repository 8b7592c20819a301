/** The forms of an approval: the body for clients, the events for webhooks, and the result for the run. */
import { envelopeOf, type NewEvent } from '../../core/events/events.ts';
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { type Json, objectOf } from '../../kernel/json.ts';
import { linkOf } from '../../kernel/link.ts';
import { type ApprovalRow, deciderKey } from './approvals.store.ts';

/** The result of the wait, for the run. */
export interface ApprovalResult {
  readonly approved: boolean;
  /** Null without a decision. */
  readonly by: { readonly kind: 'api_key' | 'console'; readonly id: string } | null;
  readonly reason: string | null;
  /** The values of the form. */
  readonly answer?: Json;
}

export function decisionOf(
  approved: boolean,
  by: ApprovalResult['by'],
  reason: string | null,
  answer: Json | null = null,
): ApprovalResult {
  return { approved, by, reason, ...(answer !== null && { answer }) };
}

interface Names {
  /** The names of API keys, by their ids. */
  readonly keys: ReadonlyMap<string, string>;
  /** The users of jobs, by the ids of the jobs. */
  readonly users: ReadonlyMap<string, string>;
}

export function approvalBody(row: ApprovalRow, { keys, users }: Names) {
  const { job_id, agent_id, conversation_id, step, title, digest, status, reason } = row;
  const details = JSON.parse(row.details) as Json;
  return {
    id: row.id,
    approval_id: row.id,
    job_id,
    agent_id,
    conversation_id,
    user_id: users.get(job_id) ?? null,
    step,
    title,
    details,
    link: linkOf(objectOf(details['link'])?.['url']),
    digest,
    status,
    requested_at: timestamp(row.requested_at),
    expires_at: timestamp(row.expires_at),
    decided_at: timestampOrNull(row.decided_at),
    decided_by: namedDecider(row, keys),
    reason,
    fields: jsonOrNull(row.fields),
    answer: jsonOrNull(row.answer),
  };
}

function jsonOrNull(text: string | null): Json | null {
  return text === null ? null : (JSON.parse(text) as Json);
}

export function requestedEvent(row: ApprovalRow): NewEvent {
  const data = { ...subjectOf(row), expires_at: timestamp(row.expires_at) };
  return { ...envelopeOf(row), type: 'approval.requested', data };
}

/** For an approval that is not pending any more. */
export function decidedEvent(row: ApprovalRow): NewEvent {
  const { status, reason, decided_at, expires_at } = row;
  const ended = {
    status,
    decided_at: timestamp(decided_at ?? expires_at),
    decided_by: deciderOf(row),
    reason,
  };
  return { ...envelopeOf(row), type: 'approval.decided', data: { ...subjectOf(row), ...ended } };
}

function deciderOf({ decided_by: id, decided_by_kind: kind, decided_by_key }: ApprovalRow) {
  if (kind === null || id === null) return null;
  return { kind, id, ...(decided_by_key !== null && { api_key_id: decided_by_key }) };
}

function namedDecider(row: ApprovalRow, names: ReadonlyMap<string, string>) {
  const decider = deciderOf(row);
  return decider && { ...decider, name: names.get(deciderKey(row) ?? '') ?? null };
}

function subjectOf({ id, job_id, conversation_id, step, title, digest }: ApprovalRow) {
  return { id, approval_id: id, job_id, conversation_id, step, title, digest };
}
