/**
 * Conversations as work makes them: begun with a job, spoken in while it runs, ended with it. Called
 * inside the transaction that accepts or settles the job, so that both are true or neither.
 */

import type { Writer } from '../database/counts.ts';
import type { Transaction } from '../database/database.ts';
import type { ConversationStatus, MessageRole, TriggerType } from '../database/tables.ts';
import { newId } from '../kernel/ids.ts';
import {
  changeConversationCounts,
  deleteConversations,
  foldConversationCounts as foldCounts,
  insertConversations,
  insertMessages,
  setConversationStatuses,
} from './conversations.store.ts';

interface ConversationKind {
  readonly organization_id: string;
  readonly agent_id: string;
  readonly trigger_type: TriggerType;
}

export interface NewConversation extends ConversationKind {
  readonly id: string;
  readonly user_id: string;
}

export interface NewMessage {
  readonly conversation_id: string;
  readonly job_id: string;
  readonly role: MessageRole;
  readonly content: string;
  /** When it was said. */
  readonly at: number;
}

/** Begins conversations, active from now on. */
export async function beginConversations(
  tx: Transaction,
  conversations: readonly NewConversation[],
  now: number,
  writer: Writer,
): Promise<void> {
  await insertConversations(
    tx,
    conversations.map(({ id, organization_id, agent_id, user_id, trigger_type }) => ({
      id,
      organization_id,
      agent_id,
      user_id,
      status: 'active',
      trigger_type,
      created_at: now,
      updated_at: now,
    })),
  );
  await changeConversationCounts(
    tx,
    writer,
    conversations.map((kind) => ({ kind, from: null, to: 'active' })),
  );
}

/** Adds messages in the order in which they were said; they cost no tokens. */
export async function addMessages(tx: Transaction, messages: readonly NewMessage[]): Promise<void> {
  await insertMessages(
    tx,
    messages.map(({ conversation_id, job_id, role, content, at }) => ({
      conversation_id,
      id: newId(),
      job_id,
      role,
      content,
      created_at: at,
    })),
  );
}

/** Ends active conversations. */
export async function endConversations(
  tx: Transaction,
  endings: readonly {
    id: string;
    kind: ConversationKind;
    status: Exclude<ConversationStatus, 'active'>;
  }[],
  now: number,
  writer: Writer,
): Promise<void> {
  await setConversationStatuses(
    tx,
    endings.map(({ id, status }) => ({ id, status, now })),
  );
  await changeConversationCounts(
    tx,
    writer,
    endings.map(({ kind, status }) => ({ kind, from: 'active', to: status })),
  );
}

/** Deletes conversations with all that was said in them. */
export async function forgetConversations(
  tx: Transaction,
  ids: readonly string[],
  writer: Writer,
): Promise<void> {
  const deleted = await deleteConversations(tx, ids);
  await changeConversationCounts(
    tx,
    writer,
    deleted.map((kind) => ({ kind, from: kind.status, to: null })),
  );
}

/** Adds the counts that other processes keep to this one's (see `Counts`). */
export function foldConversationCounts(tx: Transaction, writer: Writer): Promise<void> {
  return foldCounts(tx, writer);
}
