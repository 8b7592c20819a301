/** Every query on conversations, their counts and their messages. */
import { type Insertable, type Selectable, sql } from 'kysely';
import { createCounts } from '../database/counts.ts';
import type { Handle, Transaction } from '../database/database.ts';
import { idIn, idsParam } from '../database/ids-in.ts';
import { statement } from '../database/statement.ts';
import type {
  ConversationStatus,
  ConversationsTable,
  MessageRole,
  MessagesTable,
  TriggerType,
} from '../database/tables.ts';

export type ConversationRow = Selectable<ConversationsTable>;
export type MessageRow = Selectable<MessagesTable>;

export async function insertConversations(
  tx: Transaction,
  rows: readonly ConversationRow[],
): Promise<void> {
  await tx.insert('conversations', rows);
}

/** Inserts messages; tokens left out are none. */
export async function insertMessages(
  tx: Transaction,
  rows: readonly Insertable<MessagesTable>[],
): Promise<void> {
  await tx.insert('messages', rows);
}

const setStatus = statement<{ id: string; status: ConversationStatus; now: number }>()((db, p) =>
  db
    .updateTable('conversations')
    .set({ status: p('status'), updated_at: p('now') })
    .where('id', '=', p('id')),
);

export async function setConversationStatuses(
  tx: Transaction,
  rows: readonly { id: string; status: ConversationStatus; now: number }[],
): Promise<void> {
  await tx.each(setStatus, rows);
}

export const { change: changeConversationCounts, fold: foldConversationCounts } = createCounts(
  'conversation_counts',
  ['organization_id', 'agent_id', 'trigger_type'],
);

const remove = statement<{ ids: string }>()((db, p, dialect) =>
  db
    .deleteFrom('conversations')
    .where(idIn(dialect, p('ids')))
    .returning(['organization_id', 'agent_id', 'trigger_type', 'status']),
);
const removeMessages = statement<{ conversation_id: string }>()((db, p) =>
  db.deleteFrom('messages').where('conversation_id', '=', p('conversation_id')),
);

/** Deletes conversations and their messages; what the conversations were. */
export async function deleteConversations(tx: Transaction, ids: readonly string[]) {
  await tx.each(
    removeMessages,
    ids.map((conversation_id) => ({ conversation_id })),
  );
  return tx.all(remove, { ids: idsParam(ids) });
}

export interface ConversationFilters {
  agent_id?: string | undefined;
  user_id?: string | undefined;
  status?: ConversationStatus | undefined;
  trigger_type?: TriggerType | undefined;
}

interface Page {
  limit: number;
  offset: number;
}

/** A page of conversations, newest first, and how many there are in all. */
export async function listConversations(
  db: Handle,
  organizationId: string,
  filters: ConversationFilters,
  page: Page,
): Promise<{ conversations: ConversationRow[]; total: number }> {
  let query = db.kysely.selectFrom('conversations').where('organization_id', '=', organizationId);
  let counts = db.kysely
    .selectFrom('conversation_counts')
    .where('organization_id', '=', organizationId);
  for (const column of ['agent_id', 'status', 'trigger_type'] as const) {
    const value = filters[column];
    if (value === undefined) continue;
    query = query.where(column, '=', value);
    counts = counts.where(column, '=', value);
  }
  let total: number;
  if (filters.user_id === undefined) {
    const row = await counts
      .select((eb) => eb.fn.sum<number | null>('count').as('n'))
      .executeTakeFirst();
    total = Number(row?.n ?? 0);
  } else {
    query = query.where('user_id', '=', filters.user_id);
    const row = await query.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst();
    total = Number(row?.n ?? 0);
  }
  const rows = Math.min(page.limit, total - page.offset);
  if (rows <= 0) return { conversations: [], total };
  const conversations = await query
    .selectAll()
    .orderBy('id', 'desc')
    .limit(rows)
    .offset(page.offset)
    .execute();
  return { conversations, total };
}

const byId = statement<{ id: string; organization_id: string }>()((db, p) =>
  db
    .selectFrom('conversations')
    .selectAll()
    .where('id', '=', p('id'))
    .where('organization_id', '=', p('organization_id')),
);

export function findConversation(
  db: Handle,
  organizationId: string,
  id: string,
): Promise<ConversationRow | undefined> {
  return db.first(byId, { id, organization_id: organizationId });
}

/** A page of messages, oldest first, and how many there are in all. */
export async function listMessages(
  db: Handle,
  conversationId: string,
  role: MessageRole | undefined,
  page: Page,
): Promise<{ messages: MessageRow[]; total: number }> {
  let query = db.kysely.selectFrom('messages').where('conversation_id', '=', conversationId);
  if (role !== undefined) query = query.where('role', '=', role);
  const messages = await query
    .selectAll()
    .orderBy('id')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const row = await query.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst();
  return { messages, total: Number(row?.n ?? 0) };
}

/** Tokens of each message of a conversation, oldest first; its totals are their sums, always. */
export function listMessageTokens(db: Handle, conversationId: string) {
  return db.kysely
    .selectFrom('messages')
    .select(['id', 'role', 'job_id', 'prompt_tokens', 'completion_tokens'])
    .where('conversation_id', '=', conversationId)
    .orderBy('id')
    .execute();
}

const sumTokens = statement<{ conversation_id: string }>()((db, p) =>
  db
    .selectFrom('messages')
    .select([
      'job_id',
      sql<number>`sum(prompt_tokens)`.as('prompt_tokens'),
      sql<number>`sum(completion_tokens)`.as('completion_tokens'),
    ])
    .where('conversation_id', '=', p('conversation_id'))
    .groupBy('job_id'),
);

/** Tokens of a conversation, summed for each of its jobs. */
export function sumTokensByJob(db: Handle, conversationId: string) {
  return db.all(sumTokens, { conversation_id: conversationId });
}
