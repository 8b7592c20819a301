/** The queries on what is kept of a user, wherever it stands. */
import { sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn, isIn, listValue } from '../../adapters/database/ids-in.ts';
import { locked } from '../../adapters/database/locked.ts';
import { bytesOf, fittingRows, pageBytesMax } from '../../adapters/database/page-bytes.ts';
import type { ConversationsTable, JobsTable } from '../../adapters/database/tables.ts';

export interface OfUser {
  readonly organizationId: string;
  readonly userId: string;
}

/** What stands in place of the user of a job that was erased. */
export const erasedUser = 'erased';

/** The user's conversations after `after`, by id. */
export function conversationsOf(
  db: Handle,
  { organizationId, userId }: OfUser,
  after: string,
  limit: number,
) {
  return db.kysely
    .selectFrom('conversations')
    .select(['id', 'agent_id', 'user_id', 'status', 'trigger_type', 'created_at', 'updated_at'])
    .where('organization_id', '=', organizationId)
    .where('user_id', '=', userId)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** The jobs after `after` for which a client named the user, by id. */
export function jobsNaming(
  db: Handle,
  { organizationId, userId }: OfUser,
  after: string,
  limit: number,
) {
  return db.kysely
    .selectFrom('jobs')
    .select(['id', 'conversation_id'])
    .where('organization_id', '=', organizationId)
    .where('user_id', '=', userId)
    .where('for_user', '=', sql.lit(1))
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Jobs that have left messages in a conversation. */
export async function jobsIn(db: Handle, conversationId: string, limit: number): Promise<string[]> {
  const messages = db.kysely
    .selectFrom('messages')
    .select('job_id')
    .where('conversation_id', '=', conversationId)
    .orderBy('id')
    .limit(limit);
  const rows = await messages.execute();
  return [...new Set(rows.map(({ job_id }) => job_id))];
}

/** Jobs that these jobs have started and that are not erased. */
export function childrenKept(db: Handle, ids: readonly string[], limit: number) {
  return db.kysely
    .selectFrom('jobs')
    .select(['id', 'conversation_id'])
    .where('parent_job_id', 'is not', null)
    .where(isIn(db.dialect, sql.ref('parent_job_id'), listValue(ids)))
    .where('erased_at', 'is', null)
    .limit(limit)
    .execute();
}

const unended = ['queued', 'active', 'waiting'] as const;

/** The jobs of the user that have not ended, in the order of their ids, at most `limit`, and how many there are. */
export async function openJobs(
  db: Handle,
  { organizationId, userId }: OfUser,
  limit: number,
): Promise<{ ids: string[]; total: number }> {
  const named = db.kysely
    .selectFrom('jobs')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('user_id', '=', userId)
    // The terms of the index of these jobs.
    .where(sql<boolean>`for_user + 0 = 1`)
    .where('due_at', 'is not', null)
    .where('status', 'in', unended);
  // Of other users and of none, in the user's conversations.
  const active = db.kysely
    .selectFrom('conversations')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('user_id', '=', userId)
    .where('status', '=', 'active');
  const spoken = db.kysely
    .selectFrom('messages')
    .select('job_id')
    .where('conversation_id', 'in', active);
  const within = db.kysely
    .selectFrom('jobs')
    .select('id')
    .where('id', 'in', spoken)
    .where('status', 'in', unended);
  const both = db.kysely.selectFrom(named.union(within).as('open'));
  const page = await both.select('id').orderBy('id').limit(limit).execute();
  if (page.length < limit) return { ids: page.map(({ id }) => id), total: page.length };
  const counted = await both.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst();
  return { ids: page.map(({ id }) => id), total: Number(counted?.n ?? 0) };
}

/** Jobs by id, in its order. */
export function jobsById(db: Handle, organizationId: string, ids: readonly string[]) {
  return db.kysely
    .selectFrom('jobs')
    .selectAll()
    .where(idIn(db.dialect, listValue(ids)))
    .where('organization_id', '=', organizationId)
    .orderBy('id')
    .execute();
}

/** The states of jobs, which no other transaction changes before this one ends. */
export function lockedStates(tx: Transaction, ids: readonly string[]) {
  const query = tx.kysely
    .selectFrom('jobs')
    .select(['id', 'status'])
    .where(idIn(tx.dialect, listValue(ids)))
    .orderBy('id');
  return locked(tx.dialect, query).execute();
}

export const hasEnded = ({ status }: Pick<JobsTable, 'status'> | { status: string }) =>
  !(unended as readonly string[]).includes(status as string);

/**
 * Locks the keys that name jobs, in the order in which the acceptance of a request with such keys locks them: before the jobs
 * themselves.
 */
export async function lockKeysOf(tx: Transaction, ids: readonly string[]): Promise<void> {
  // SQLite has only one writer at a time.
  if (tx.dialect === 'sqlite') return;
  const named = isIn(tx.dialect, sql.ref('job_id'), listValue(ids));
  const requests = tx.kysely.selectFrom('idempotency_keys').select('owner').where(named);
  // In the order of the acceptance, which is not that of the database's language.
  const inBytes = (column: string) => sql`${sql.ref(column)} collate "C"`;
  await requests
    .orderBy(inBytes('owner'))
    .orderBy(inBytes('idempotency_key'))
    .forUpdate()
    .execute();
  const keys = tx.kysely.selectFrom('job_keys').select('job_id').where(named);
  await keys
    .orderBy(inBytes('organization_id'))
    .orderBy(inBytes('skill'))
    .orderBy(inBytes('job_key'))
    .forUpdate()
    .execute();
}

/** Erases what jobs have of text; their rows stay. */
export async function redactJobs(tx: Transaction, ids: readonly string[], now: number) {
  const isOne = idIn(tx.dialect, listValue(ids));
  const error = JSON.stringify({ code: 'skill_execution_failed', message: 'erased' });
  await tx.kysely
    .updateTable('jobs')
    .set({
      input: 'null',
      output: null,
      progress: null,
      agent_overrides: null,
      instruction_values: null,
      job_key: null,
      error: sql`case when error is null then null else ${error} end`,
      user_id: erasedUser,
      for_user: 0,
      erased_at: now,
    })
    .where(isOne)
    .execute();
  for (const table of ['job_events', 'idempotency_keys', 'job_keys'] as const) {
    await tx.kysely
      .deleteFrom(table)
      .where(isIn(tx.dialect, sql.ref('job_id'), listValue(ids)))
      .execute();
  }
}

/** Which of these jobs were erased. */
export async function erasedAmong(db: Handle, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const rows = await db.kysely
    .selectFrom('jobs')
    .select('id')
    .where(idIn(db.dialect, listValue(ids)))
    .where('erased_at', 'is not', null)
    .execute();
  return new Set(rows.map(({ id }) => id));
}

/** A page of a conversation's messages after `after`, by id, bounded in bytes too: at least one, if there are any. */
export async function messagesAfter(
  db: Handle,
  conversationId: string,
  after: string,
  limit: number,
) {
  const page = db.kysely
    .selectFrom('messages')
    .where('conversation_id', '=', conversationId)
    .where('id', '>', after)
    .orderBy('id');
  const sizes = await page.select(bytesOf('content').as('bytes')).limit(limit).execute();
  return await page
    .select(['id', 'job_id', 'role', 'content', 'created_at'])
    .limit(fittingRows(sizes, pageBytesMax))
    .execute();
}

/** Whether a conversation was begun for the user. */
export async function isBegunFor(
  db: Handle,
  { organizationId, userId }: OfUser,
  id: ConversationsTable['id'],
): Promise<boolean> {
  const row = await db.kysely
    .selectFrom('conversations')
    .select('id')
    .where('id', '=', id)
    .where('organization_id', '=', organizationId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return row !== undefined;
}
