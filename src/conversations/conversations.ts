/** Conversations as clients read them: pages, messages, and their token counts. */
import type { Database, Handle } from '../database/database.ts';
import type { PageAsked } from '../database/page-bytes.ts';
import type { MessageRole } from '../database/tables.ts';
import { bind } from '../kernel/bind.ts';
import { timestamp } from '../kernel/clock.ts';
import { notFound } from '../kernel/errors.ts';
import { isId } from '../kernel/ids.ts';
import {
  type ConversationFilters,
  listConversations,
  listOpenings,
} from './conversation-lists.store.ts';
import {
  type ConversationRow,
  findConversation,
  listMessages,
  listMessageTokens,
  type MessageRow,
  summaryMark,
  sumTokensByJob,
} from './conversations.store.ts';
import { listData, listDialogue } from './dialogue.store.ts';

/** Characters of the first message in a list that shows how conversations begin. */
export const openingLength = 200;
/** Messages in one answer that tells the tokens of each. */
const breakdownMax = 20_000;

/**
 * Tokens in the specification's words. Each is the sum of what providers reported, and the total the
 * sum of the two; null where models were called and nothing of it was reported, which is not zero.
 */
export type TokenStats = Record<
  'prompt_tokens' | 'completion_tokens' | 'total_tokens',
  number | null
>;

/** Adds up. */
export function tokenStats(
  rows: readonly Pick<MessageRow, 'prompt_tokens' | 'completion_tokens' | 'unreported'>[],
): TokenStats {
  let prompt = 0;
  let completion = 0;
  let unreported = 0;
  for (const row of rows) {
    prompt += row.prompt_tokens;
    completion += row.completion_tokens;
    unreported |= row.unreported;
  }
  return {
    prompt_tokens: known(prompt, unreported & 1),
    completion_tokens: known(completion, unreported & 2),
    total_tokens: known(prompt + completion, unreported),
  };
}

/** A count of which some part was not reported is not known while nothing of it was. */
function known(tokens: number, unreported: number): number | null {
  return tokens === 0 && unreported !== 0 ? null : tokens;
}

export type Conversations = ReturnType<typeof createConversations>;

export function createConversations(database: Database) {
  return bind(database.read, {
    find,
    list,
    listOpened,
    get,
    messages,
    tokenUsage,
    dialogue: listDialogue,
    dataOf,
    tokensOfJob,
  });
}

/** The organization's conversation, or `404 not_found`. */
async function find(db: Handle, organizationId: string, id: string) {
  const row = isId(id) ? await findConversation(db, { organizationId, id }) : undefined;
  if (row === undefined) throw notFound('Conversation');
  return row;
}

async function list(
  db: Handle,
  organizationId: string,
  filters: ConversationFilters,
  page: PageAsked,
) {
  const { conversations, total } = await listConversations(db, organizationId, filters, page);
  return { conversations: conversations.map(conversationView), total };
}

/** Like `list`, with the beginning of each. */
async function listOpened(
  db: Handle,
  organizationId: string,
  filters: ConversationFilters,
  page: PageAsked,
) {
  const { conversations, total } = await list(db, organizationId, filters, page);
  const ids = conversations.map(({ id }) => id);
  const openings = await listOpenings(db, ids, openingLength);
  const opened = conversations.map((one) => ({ ...one, opening: openings.get(one.id) ?? null }));
  return { conversations: opened, total };
}

async function get(db: Handle, organizationId: string, id: string) {
  const row = await find(db, organizationId, id);
  return {
    ...conversationView(row),
    token_stats: tokenStats(await sumTokensByJob(db, { conversationId: id })),
  };
}

async function messages(
  db: Handle,
  conversationId: string,
  role: MessageRole | undefined,
  page: PageAsked,
) {
  const { messages, ...found } = await listMessages(db, conversationId, role, page);
  const listed = messages.map(({ dialogue, ...one }) => ({
    ...one,
    kind: dialogue >= summaryMark ? ('summary' as const) : ('message' as const),
    created_at: timestamp(one.created_at),
  }));
  return { ...found, messages: listed };
}

/** The tokens of all messages together, and of each message from `offset` on. */
async function tokenUsage(db: Handle, conversationId: string, offset = 0) {
  const totals = tokenStats(await sumTokensByJob(db, { conversationId }));
  const rows = await listMessageTokens(db, conversationId, { limit: breakdownMax + 1, offset });
  const breakdown = rows
    .slice(0, breakdownMax)
    .map(({ id, role, model, prompt_tokens, completion_tokens, unreported }) => ({
      message_id: id,
      role,
      model,
      prompt_tokens: known(prompt_tokens, unreported & 1),
      completion_tokens: known(completion_tokens, unreported & 2),
    }));
  return {
    usage: { conversation_id: conversationId, ...totals, breakdown },
    /** The offset at which to go on, null where the breakdown is complete. */
    next: rows.length > breakdownMax ? offset + breakdownMax : null,
  };
}

/** Messages in the form that models take, by id; those of users have none. */
async function dataOf(
  db: Handle,
  conversationId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await listData(db, { conversationId, ids });
  return new Map(rows.flatMap(({ id, data }) => (data === null ? [] : [[id, data]])));
}

/** Tokens that one job of a conversation used. */
async function tokensOfJob(db: Handle, conversationId: string, jobId: string): Promise<TokenStats> {
  const rows = await sumTokensByJob(db, { conversationId });
  return tokenStats(rows.filter((row) => row.job_id === jobId));
}

/** Column by column, because PostgreSQL has more of them than are shown. */
function conversationView(row: ConversationRow) {
  const { id, agent_id, user_id, status, trigger_type, created_at, updated_at } = row;
  const moments = { created_at: timestamp(created_at), updated_at: timestamp(updated_at) };
  return { id, agent_id, user_id, status, trigger_type, ...moments };
}
