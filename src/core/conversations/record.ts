/**
 * Conversations as work makes them: begun with a job, spoken in while it runs, ended with it. Called
 * inside the transaction that accepts or settles the job, so that both are true or neither.
 */

import type { Writer } from '../../adapters/database/counts.ts';
import type { Transaction } from '../../adapters/database/database.ts';
import { continueAfter, newId } from '../../kernel/ids.ts';
import { isCleanText } from '../../kernel/text.ts';
import {
  type ConversationRow,
  changeMessageOfStep,
  changeMessageOfUser,
  conversationCounts,
  deleteCopies,
  deleteEmptyConversations,
  deleteMessages,
  endConversations as endAndCount,
  findLastMessage,
  giveToUser,
  holdConversations,
  insertConversations,
  insertMessages,
  listForks,
  lockConversations as lock,
  type MessageRow,
  type NewConversationRow,
  reopenConversation,
  setFormingOf,
} from './conversations.store.ts';
import { summaryMark, unfinishedMark } from './dialogue-marks.ts';

export type NewConversation = Readonly<
  Omit<NewConversationRow, 'status' | 'created_at' | 'updated_at'>
>;

export interface NewMessage
  extends Readonly<Pick<MessageRow, 'conversation_id' | 'job_id' | 'role' | 'content'>> {
  /** Made when it is left out. */
  readonly id?: string;
  /** When it was said. */
  readonly at: number;
}

/** Tokens of a call, null where they were not reported; parts of them; nano-dollars, null where unknown. */
interface MessageTokens {
  readonly prompt: number | null;
  readonly completion: number | null;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly reasoning?: number;
  readonly cost: number | null;
}

/** A message that a model gave, or was given in answer. */
export interface DialogueEntry extends NewMessage {
  /** What the model's call cost, null where the provider did not say; left out for what cost nothing. */
  readonly tokens?: MessageTokens;
  /** The model that wrote it; left out where none did. */
  readonly model?: string;
  /** JSON: the message as a model takes it. */
  readonly data: string | null;
  /** Whether a later run that continues the conversation is shown it. */
  readonly isDialogue: boolean;
  /** Whether it is a summary of earlier messages. */
  readonly isSummary?: boolean;
  /** Whether its call did not finish. */
  readonly isUnfinished?: boolean;
}

/** A message that was held until guards had seen it, by the step in which it resulted. */
export interface ReleasedMessage extends Release {
  readonly conversation_id: string;
  readonly job_id: string;
}

/** What becomes of a held message. */
export interface Release {
  /** The number of the step. */
  readonly n: number;
  readonly content: string;
  /** JSON: the message as a model takes it; null for one that no model is shown. */
  readonly data: string | null;
  readonly isDialogue: boolean;
}

/** Gives a message that was held its content. */
export function releaseMessage(
  tx: Transaction,
  { isDialogue, content, ...message }: ReleasedMessage,
): Promise<void> {
  const row = { ...message, content: storable(content), dialogue: Number(isDialogue) };
  return changeMessageOfStep(tx, row);
}

/** A message of a user as guards have left it: one by its id, or the one with which the first of the jobs began. */
export interface JudgedTask {
  readonly conversation_id: string;
  readonly id: string | null;
  readonly job_ids: readonly string[];
  readonly content: string;
  /** 1 where no later job has it judged again, `leftOutMark` where none is sent it, or `unjudgedMark`. */
  readonly mark: number;
}

/** Changes what a user has said, as the conversation has it, to what guards have left of it. */
export function changeTask(
  tx: Transaction,
  { mark, content, ...message }: JudgedTask,
): Promise<void> {
  const row = { ...message, content: storable(content), dialogue: mark };
  return changeMessageOfUser(tx, row);
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
  await conversationCounts.change(
    tx,
    writer,
    conversations.map((kind) => ({ kind, from: null, to: 'active' })),
  );
}

/** Adds messages in the order in which they were said; they cost no tokens. */
export async function addMessages(tx: Transaction, messages: readonly NewMessage[]): Promise<void> {
  await insertMessages(tx, messages.map(plainRow));
}

/** As `addMessages`, with what models need to go on from there and what their calls cost. */
export async function addDialogue(
  tx: Transaction,
  entries: readonly DialogueEntry[],
): Promise<void> {
  await insertMessages(
    tx,
    entries.map((entry) => {
      const {
        tokens = noTokens,
        model,
        data,
        isDialogue,
        isSummary,
        isUnfinished,
        ...message
      } = entry;
      return {
        ...plainRow(message),
        prompt_tokens: tokens.prompt ?? 0,
        completion_tokens: tokens.completion ?? 0,
        unreported: (tokens.prompt === null ? 1 : 0) + (tokens.completion === null ? 2 : 0),
        cache_read_tokens: tokens.cacheRead ?? 0,
        cache_write_tokens: tokens.cacheWrite ?? 0,
        reasoning_tokens: tokens.reasoning ?? 0,
        cost: tokens.cost,
        dialogue: isUnfinished
          ? unfinishedMark
          : Number(isDialogue) + (isSummary ? summaryMark : 0),
        model: model ?? null,
        data,
      };
    }),
  );
}

const noTokens: MessageTokens = { prompt: 0, completion: 0, cost: null };

function plainRow({ id = newId(), conversation_id, job_id, role, content, at }: NewMessage) {
  return { conversation_id, id, job_id, role, content: storable(content), created_at: at };
}

/** PostgreSQL holds no NUL and no half of a surrogate pair: a text with one is kept as JSON text. */
function storable(content: string): string {
  return isCleanText(content) ? content : JSON.stringify(content);
}

export type { ConversationRow, NewConversationRow };
export const lockConversations = lock;
export const endConversations = endAndCount;
export const formMemoriesLater = setFormingOf;
export const giveConversation = giveToUser;

export function foldConversationCounts(tx: Transaction, writer: Writer): Promise<void> {
  return conversationCounts.fold(tx, writer);
}

/** Begins a conversation that no job has said anything in, with an end. */
export async function beginFork(
  tx: Transaction,
  fork: NewConversationRow,
  writer: Writer,
): Promise<void> {
  await insertConversations(tx, [fork]);
  await conversationCounts.change(tx, writer, [{ kind: fork, from: null, to: fork.status }]);
}

/** Makes a conversation that is held and has ended active again. */
export async function continueConversation(
  tx: Transaction,
  conversation: ConversationRow,
  now: number,
  writer: Writer,
): Promise<void> {
  const { id, status } = conversation;
  await reopenConversation(tx, id, now);
  // Another process, whose clock is another, may have said it.
  const last = await findLastMessage(tx, { conversation_id: id });
  if (last !== undefined) continueAfter(last.id);
  await conversationCounts.change(tx, writer, [{ kind: conversation, from: status, to: 'active' }]);
}

/**
 * Deletes the messages of jobs, with their copies in forks, and the conversations that are then empty. A conversation that other
 * jobs have continued stays, with the messages of those.
 */
export async function forgetJobs(
  tx: Transaction,
  jobs: readonly { readonly id: string; readonly conversation_id: string }[],
  writer: Writer,
): Promise<void> {
  const own = jobs.map((job) => job.conversation_id);
  const known = await listForks(tx, { ids: own });
  const ids = [...new Set([...own, ...known.map(({ id }) => id)])];
  // Held before it is looked whether one is empty: what continues it has then either been recorded
  // with its messages, or finds it gone.
  await holdConversations(tx, ids);
  await deleteMessages(tx, jobs);
  // Also of those that were begun before the others were held.
  const forks = await listForks(tx, { ids: own });
  const bySource = Map.groupBy(jobs, (job) => job.conversation_id);
  await deleteCopies(
    tx,
    forks.map(({ id, source }) => ({
      conversation_id: id,
      ids: (bySource.get(source) ?? []).map((job) => job.id),
    })),
  );
  const deleted = await deleteEmptyConversations(tx, { ids });
  await conversationCounts.change(
    tx,
    writer,
    deleted.map((kind) => ({ kind, from: kind.status, to: null })),
  );
}
