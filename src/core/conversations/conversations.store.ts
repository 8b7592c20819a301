/** The queries on conversations, their counts and their messages; not the lists, and not what models are sent. */
import { type Insertable, type Selectable, type SqlBool, sql } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import { Counts, type Writer } from '../../adapters/database/counts.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn, idInLocked, isIn } from '../../adapters/database/ids-in.ts';
import { locked } from '../../adapters/database/locked.ts';
import { bytesOf, cutPage, type PageAsked } from '../../adapters/database/page-bytes.ts';
import { allRows, firstRow, listOf, statement } from '../../adapters/database/statement.ts';
import type {
  ConversationStatus,
  ConversationsTable,
  MessageRole,
  MessagesTable,
} from '../../adapters/database/tables.ts';

export type ConversationRow = Selectable<ConversationsTable>;
export type MessageRow = Selectable<MessagesTable>;

/** A new conversation; it has no failed summaries. */
export type NewConversationRow = Omit<
  ConversationRow,
  | 'failed_summaries'
  | 'next_summary_at'
  | 'failed_summaries_version'
  | 'forked_from'
  | 'forms_at'
  | 'formed_through'
> &
  Partial<Pick<ConversationRow, 'forked_from'>>;

export function insertConversations(tx: Transaction, rows: readonly NewConversationRow[]) {
  return tx.insert('conversations', rows);
}

/** Inserts messages; tokens left out are none. */
export function insertMessages(tx: Transaction, rows: readonly Insertable<MessagesTable>[]) {
  return tx.insert('messages', rows);
}

const setStatus = statement<{ ids: readonly string[]; status: ConversationStatus; now: number }>()(
  (db, p, dialect) =>
    db
      .updateTable('conversations')
      .set({ status: p('status'), updated_at: p('now') })
      .where(idInLocked(dialect, listOf(p, 'ids'), 'conversations', sql<SqlBool>`true`))
      .returning(['organization_id', 'agent_id', 'trigger_type']),
);

/** Makes a conversation that is held active again. */
export function reopenConversation(tx: Transaction, id: string, now: number): Promise<void> {
  return tx.each(setStatus, [{ ids: [id], status: 'active', now }]);
}

const setUser = statement<{ id: string; user_id: string }>()((db, p) =>
  db
    .updateTable('conversations')
    .set({ user_id: p('user_id') })
    .where('id', '=', p('id')),
);

/** Makes a conversation that is held one of the user. */
export function giveToUser(tx: Transaction, id: string, user_id: string): Promise<void> {
  return tx.each(setUser, [{ id, user_id }]);
}

const quietSeconds = {
  sqlite: sql<number>`json_extract(agents.memory_formation, '$.quiet_seconds')`,
  postgres: sql<number>`(agents.memory_formation::json ->> 'quiet_seconds')::bigint`,
};

const setForming = statement<{ ids: readonly string[]; now: number }>()((db, p, dialect) => {
  const quiet = quietSeconds[dialect];
  return db
    .updateTable('conversations')
    .from('agents')
    .set({ forms_at: sql<number>`cast(${p('now')} as bigint) + 1000 * ${quiet}` })
    .whereRef('agents.organization_id', '=', 'conversations.organization_id')
    .whereRef('agents.id', '=', 'conversations.agent_id')
    .where('agents.memory_formation', 'is not', null)
    .where(isIn(dialect, sql.ref('conversations.id'), listOf(p, 'ids')));
});

/** Says when memories are formed of conversations in which a run has just ended, where their agents have them formed. */
export function setFormingOf(tx: Transaction, ids: readonly string[], now: number): Promise<void> {
  return tx.each(setForming, [{ ids, now }]);
}

export const conversationCounts = new Counts('conversation_counts', [
  'organization_id',
  'agent_id',
  'trigger_type',
]);

/** The end of an active conversation. */
interface Ending {
  readonly id: string;
  readonly status: Exclude<ConversationStatus, 'active'>;
}

/** Counted in the order in which `Counts` writes its rows, so that no two transactions deadlock. */
const endAndCount = statement<{
  ids: readonly string[];
  failed: readonly string[];
  now: number;
  writer: Writer;
}>()((db, p, dialect) =>
  db
    .with('ended', (ended) =>
      ended
        .updateTable('conversations')
        .set({
          status: sql<ConversationStatus>`case when ${isIn(dialect, sql`id`, listOf(p, 'failed'))} then 'failed' else 'completed' end`,
          updated_at: p('now'),
        })
        .where(idInLocked(dialect, listOf(p, 'ids'), 'conversations', sql<SqlBool>`true`))
        .returning(['organization_id', 'agent_id', 'trigger_type', 'status']),
    )
    .insertInto('conversation_counts')
    .columns(['organization_id', 'agent_id', 'trigger_type', 'status', 'writer', 'count'])
    .expression(
      sql`select organization_id, agent_id, trigger_type, change.status, ${p('writer')}::text, sum(change.by)
        from ended, lateral (values ('active', -1), (ended.status, 1)) as change (status, by)
        group by organization_id, agent_id, trigger_type, change.status
        order by concat_ws(chr(10), organization_id, agent_id, trigger_type, change.status) collate "C"`,
    )
    .onConflict((conflict) =>
      conflict
        .columns(['organization_id', 'agent_id', 'trigger_type', 'status', 'writer'])
        .doUpdateSet((eb) => ({
          count: eb('conversation_counts.count', '+', eb.ref('excluded.count')),
        })),
    ),
);

/** Ends active conversations and counts them; on PostgreSQL one statement, for whose answer no code waits. */
export async function endConversations(
  tx: Transaction,
  endings: readonly Ending[],
  now: number,
  writer: Writer,
): Promise<void> {
  if (endings.length === 0) return;
  const idsOf = (some: readonly Ending[]) => some.map(({ id }) => id);
  if (tx.dialect === 'postgres') {
    const failed = endings.filter(({ status }) => status === 'failed');
    return tx.each(endAndCount, [{ ids: idsOf(endings), failed: idsOf(failed), now, writer }]);
  }
  for (const [status, ended] of Map.groupBy(endings, (ending) => ending.status)) {
    // A continued conversation keeps the kind of its first job.
    const kinds = await tx.all(setStatus, { ids: idsOf(ended), status, now });
    const changes = kinds.map((kind) => ({ kind, from: 'active' as const, to: status }));
    await conversationCounts.change(tx, writer, changes);
  }
}

/** The last message of a conversation; undefined when there is none. */
export const findLastMessage = firstRow<{ conversation_id: string }, Transaction>()((db, p) =>
  db
    .selectFrom('messages')
    .select('id')
    .where('conversation_id', '=', p('conversation_id'))
    .orderBy('id', 'desc')
    .limit(1),
);

const messageOfStep = statement<{
  conversation_id: string;
  job_id: string;
  n: number;
  content: string;
  data: string | null;
  dialogue: number;
}>()((db, p) =>
  db
    .updateTable('messages')
    .set({ content: p('content'), data: p('data'), dialogue: p('dialogue') })
    .where('conversation_id', '=', p('conversation_id'))
    .where('id', '=', (eb) =>
      eb
        .selectFrom('job_steps')
        .select(sql<string>`message_id`.as('id'))
        .where('job_id', '=', p('job_id'))
        .where('n', '=', p('n')),
    ),
);

/** Changes the message in which a step resulted. */
export function changeMessageOfStep(
  tx: Transaction,
  row: {
    conversation_id: string;
    job_id: string;
    n: number;
    content: string;
    data: string | null;
    dialogue: number;
  },
): Promise<void> {
  return tx.each(messageOfStep, [row]);
}

interface JudgedMessage {
  readonly conversation_id: string;
  /** Null for the message with which the first of the jobs began. Later ones of a job are those that its code has added. */
  readonly id: string | null;
  readonly job_ids: readonly string[];
  readonly content: string;
  /** 1 once guards have judged it. */
  readonly dialogue: number;
}

const messageOfUser = statement<JudgedMessage>()((db, p, dialect) =>
  db
    .updateTable('messages')
    .set({ content: p('content'), dialogue: p('dialogue') })
    .where('conversation_id', '=', p('conversation_id'))
    .where('id', '=', ({ selectFrom }) => {
      const began = selectFrom('messages as own')
        .select(({ fn }) => fn.min('own.id').as('id'))
        .where('own.conversation_id', '=', p('conversation_id'))
        .where('own.role', '=', sql.lit('user'))
        .where(isIn(dialect, sql.ref('own.job_id'), listOf(p, 'job_ids')))
        .where('own.data', 'is', null);
      return sql<string>`coalesce(cast(${p('id')} as text), (${began}))`;
    }),
);

/** Changes a message of a user to what guards have left of it. */
export function changeMessageOfUser(tx: Transaction, row: JudgedMessage): Promise<void> {
  return tx.each(messageOfUser, [row]);
}

const removeMessages = statement<{ conversation_id: string; job_id: string }>()((db, p) =>
  db
    .deleteFrom('messages')
    .where('conversation_id', '=', p('conversation_id'))
    .where('job_id', '=', p('job_id')),
);

/** Deletes the messages of jobs. */
export async function deleteMessages(
  tx: Transaction,
  jobs: readonly { readonly id: string; readonly conversation_id: string }[],
): Promise<void> {
  await tx.each(
    removeMessages,
    jobs.map(({ id, conversation_id }) => ({ conversation_id, job_id: id })),
  );
}

const byIdsLocked = statement<{ ids: readonly string[] }>()((db, p, dialect) => {
  const query = db
    .selectFrom('conversations')
    .selectAll()
    .where(idIn(dialect, listOf(p, 'ids')))
    .orderBy('id');
  return locked(dialect, query);
});

/**
 * The conversations that there are of these, held until the transaction ends, in the order in which all do:
 * before anything is counted of any of them.
 */
export function lockConversations(tx: Transaction, ids: readonly string[]) {
  return tx.all(byIdsLocked, { ids });
}

/** Like `lockConversations`, without returning the rows. */
export async function holdConversations(tx: Transaction, ids: readonly string[]): Promise<void> {
  if (tx.dialect !== 'sqlite') await tx.each(byIdsLocked, [{ ids }]);
}

/** The conversations that may have copies of the messages of others, each with the other one: its forks, and those beside it. */
export const listForks = allRows<{ ids: readonly string[] }, Transaction>()((db, p, dialect) =>
  db
    .selectFrom('conversations as source')
    .innerJoin('conversations as fork', (join) =>
      join.on(sql<SqlBool>`fork.forked_from = coalesce(source.forked_from, source.id)`),
    )
    .select(['fork.id', 'source.id as source'])
    .where(isIn(dialect, sql.ref('source.id'), listOf(p, 'ids')))
    .whereRef('fork.id', '<>', 'source.id')
    .orderBy('fork.id'),
);

const removeCopies = statement<{ conversation_id: string; ids: readonly string[] }>()(
  (db, p, dialect) =>
    db
      .deleteFrom('messages')
      .where('conversation_id', '=', p('conversation_id'))
      .where(isIn(dialect, sql.ref('job_id'), listOf(p, 'ids'))),
);

/** Deletes the copies of the messages of jobs in forks. */
export function deleteCopies(
  tx: Transaction,
  copies: readonly { readonly conversation_id: string; readonly ids: readonly string[] }[],
): Promise<void> {
  return tx.each(removeCopies, copies);
}

/** Deletes the conversations among these that have no message and in which no job is under way, and returns them. */
export const deleteEmptyConversations = allRows<{ ids: readonly string[] }, Transaction>()(
  (db, p, dialect) =>
    db
      .deleteFrom('conversations')
      .where(idIn(dialect, listOf(p, 'ids')))
      .where('status', '<>', sql.lit('active'))
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

export const findConversation = firstRow<{ id: string; organizationId: string }>()((db, p) =>
  db
    .selectFrom('conversations')
    .selectAll()
    .where('id', '=', p('id'))
    .where('organization_id', '=', p('organizationId')),
);

/** The data of other messages stays in the database. */
const dataWithFiles = sql<string | null>`case when data like '%"files":[{"id":%' then data end`;

/**
 * A page of messages, oldest first, how many there are in all, and the offset at which to go on where
 * the page was cut for its bytes.
 */
export async function listMessages(
  db: Handle,
  conversationId: string,
  role: MessageRole | undefined,
  page: PageAsked,
) {
  let query = db.kysely.selectFrom('messages').where('conversation_id', '=', conversationId);
  if (role !== undefined) query = query.where('role', '=', role);
  const total = await countOf(query);
  const sizes = await query
    .select(['id', bytesOf('content', 'data').as('bytes')])
    .orderBy('id')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const { rows, next } = cutPage(sizes, page);
  const [first, last] = [rows.at(0), rows.at(-1)];
  if (first === undefined || last === undefined) return { messages: [], total, next };
  const messages = await query
    .select(['id', 'conversation_id', 'role', 'content', 'model', 'created_at', 'dialogue'])
    .select(dataWithFiles.as('data'))
    .where('id', '>=', first.id)
    .where('id', '<=', last.id)
    .orderBy('id')
    .execute();
  return { messages, total, next };
}

// Messages with tokens have an index of their own, from which this is read without the messages.
const hasTokens = sql<SqlBool>`prompt_tokens + completion_tokens + unreported > 0`;

const countedColumns = [
  'prompt_tokens',
  'completion_tokens',
  'unreported',
  'cache_read_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'cost',
] as const;
/** Of a message for which no model was asked. */
const noTokens = {
  prompt_tokens: 0,
  completion_tokens: 0,
  unreported: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  cost: 0,
};

/**
 * Messages of a conversation, oldest first, with the tokens of each: `limit` of them after `offset`.
 * The totals of the conversation are the sums over all of them, always.
 */
export async function listMessageTokens(
  db: Handle,
  conversationId: string,
  { limit, offset }: PageAsked,
) {
  const messages = db.kysely.selectFrom('messages').where('conversation_id', '=', conversationId);
  const [page, counted] = await Promise.all([
    messages.select(['id', 'role']).orderBy('id').limit(limit).offset(offset).execute(),
    messages
      .select(['id', ...countedColumns])
      .where(hasTokens)
      .execute(),
  ]);
  const byId = new Map(counted.map((row) => [row.id, row]));
  return page.map((message) => ({ ...noTokens, ...byId.get(message.id), ...message }));
}

/** Tokens of a conversation, summed for each of its jobs that used any. */
export const sumTokensByJob = allRows<{ conversationId: string }>()((db, p) =>
  db
    .selectFrom('messages')
    .select([
      'job_id',
      sql<number>`sum(prompt_tokens)`.as('prompt_tokens'),
      sql<number>`sum(completion_tokens)`.as('completion_tokens'),
      sql<number>`sum(cache_read_tokens)`.as('cache_read_tokens'),
      sql<number>`sum(cache_write_tokens)`.as('cache_write_tokens'),
      sql<number>`sum(reasoning_tokens)`.as('reasoning_tokens'),
      sql<number | null>`sum(cost)`.as('cost'),
      sql<number>`sum(case when cost is null then 1 else 0 end)`.as('unpriced'),
      // Whether some call's tokens are not known (see `messages.unreported`).
      sql<number>`max(unreported % 2) + 2 * max(unreported / 2)`.as('unreported'),
    ])
    .where('conversation_id', '=', p('conversationId'))
    .where(hasTokens)
    .groupBy('job_id'),
);

/** Sums over messages; `unreported` as in `messages`, `unpriced` the number of those without a cost. */
export type CountedTokens = Omit<Awaited<ReturnType<typeof sumTokensByJob>>[number], 'job_id'>;
