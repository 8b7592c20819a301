/** Every query on conversations, their counts and their messages. */
import { type Insertable, type Selectable, type SqlBool, sql } from 'kysely';
import { createCounts } from '../database/counts.ts';
import type { Handle, Transaction } from '../database/database.ts';
import { idIn, idInLocked, idsParam } from '../database/ids-in.ts';
import { statement } from '../database/statement.ts';
import type {
  ConversationStatus,
  ConversationsTable,
  MessageRole,
  MessagesTable,
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

const setStatus = statement<{ ids: string; status: ConversationStatus; now: number }>()(
  (db, p, dialect) =>
    db
      .updateTable('conversations')
      .set({ status: p('status'), updated_at: p('now') })
      .where(idInLocked(dialect, p('ids'), 'conversations', sql<SqlBool>`true`))
      .returning(['organization_id', 'agent_id', 'trigger_type']),
);

/** Gives conversations a status; of what kind they are. */
export function setConversationStatus(
  tx: Transaction,
  ids: readonly string[],
  status: ConversationStatus,
  now: number,
) {
  return tx.all(setStatus, { ids: idsParam(ids), status, now });
}

/** Makes a conversation that is held active again. */
export function reopenConversation(tx: Transaction, id: string, now: number): Promise<void> {
  return tx.each(setStatus, [{ ids: idsParam([id]), status: 'active', now }]);
}

export const { change: changeConversationCounts, fold: foldConversationCounts } = createCounts(
  'conversation_counts',
  ['organization_id', 'agent_id', 'trigger_type'],
);

const lastMessage = statement<{ conversation_id: string }>()((db, p) =>
  db
    .selectFrom('messages')
    .select('id')
    .where('conversation_id', '=', p('conversation_id'))
    .orderBy('id', 'desc')
    .limit(1),
);

/** The last message of a conversation; undefined when there is none. */
export function findLastMessage(tx: Transaction, conversationId: string) {
  return tx.first(lastMessage, { conversation_id: conversationId });
}

const removeMessages = statement<{ conversation_id: string; job_id: string }>()((db, p) =>
  db
    .deleteFrom('messages')
    .where('conversation_id', '=', p('conversation_id'))
    .where('job_id', '=', p('job_id')),
);

/** Deletes what was said in jobs. */
export async function deleteMessages(
  tx: Transaction,
  jobs: readonly { readonly id: string; readonly conversation_id: string }[],
): Promise<void> {
  await tx.each(
    removeMessages,
    jobs.map(({ id, conversation_id }) => ({ conversation_id, job_id: id })),
  );
}

const byIdsLocked = statement<{ ids: string }>()((db, p, dialect) => {
  const query = db
    .selectFrom('conversations')
    .selectAll()
    .where(idIn(dialect, p('ids')))
    .orderBy('id');
  // SQLite has one writer at a time anyhow.
  return dialect === 'sqlite' ? query : query.forUpdate();
});

/** The conversations that there are of these, held until the transaction ends, in the order in which all do. */
export function lockConversations(
  tx: Transaction,
  ids: readonly string[],
): Promise<ConversationRow[]> {
  return tx.all(byIdsLocked, { ids: idsParam(ids) });
}

/** As `lockConversations`, where nobody has to know them. */
export async function holdConversations(tx: Transaction, ids: readonly string[]): Promise<void> {
  if (tx.dialect !== 'sqlite') await tx.each(byIdsLocked, [{ ids: idsParam(ids) }]);
}

const removeEmpty = statement<{ ids: string }>()((db, p, dialect) =>
  db
    .deleteFrom('conversations')
    .where(idIn(dialect, p('ids')))
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('messages')
            .select('messages.id')
            .whereRef('messages.conversation_id', '=', 'conversations.id'),
        ),
      ),
    )
    .returning(['organization_id', 'agent_id', 'trigger_type', 'status']),
);

/** Deletes those of the conversations that have no message; what they were. */
export function deleteEmptyConversations(tx: Transaction, ids: readonly string[]) {
  return tx.all(removeEmpty, { ids: idsParam(ids) });
}

const dialogue = statement<{ conversation_id: string; job_id: string; limit: number }>()((db, p) =>
  db
    .selectFrom('messages')
    .select(['role', 'content', 'data'])
    .where('conversation_id', '=', p('conversation_id'))
    .where('job_id', '<>', p('job_id'))
    .where((eb) => eb.or([eb('dialogue', '=', 1), eb('role', '=', 'user')]))
    .orderBy('id', 'desc')
    .limit(p('limit')),
);

/** What was said to and by the agent in other jobs of a conversation: the newest, newest first. */
export function listDialogue(
  db: Handle,
  conversationId: string,
  exceptJobId: string,
  limit: number,
) {
  return db.all(dialogue, { conversation_id: conversationId, job_id: exceptJobId, limit });
}

const dataOf = statement<{ conversation_id: string; ids: string }>()((db, p, dialect) =>
  db
    .selectFrom('messages')
    .select(['id', 'data'])
    .where('conversation_id', '=', p('conversation_id'))
    .where(idIn(dialect, p('ids')))
    .where('data', 'is not', null),
);

/** Messages of a conversation as models take them. */
export function listData(db: Handle, conversationId: string, ids: readonly string[]) {
  return db.all(dataOf, { conversation_id: conversationId, ids: idsParam(ids) });
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
  page: { limit: number; offset: number },
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
    .select(['id', 'role', 'job_id', 'prompt_tokens', 'completion_tokens', 'unreported'])
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
      // Whether some call's tokens are not known (see `messages.unreported`).
      sql<number>`max(unreported % 2) + 2 * max(unreported / 2)`.as('unreported'),
    ])
    .where('conversation_id', '=', p('conversation_id'))
    .groupBy('job_id'),
);

/** Tokens of a conversation, summed for each of its jobs. */
export function sumTokensByJob(db: Handle, conversationId: string) {
  return db.all(sumTokens, { conversation_id: conversationId });
}
