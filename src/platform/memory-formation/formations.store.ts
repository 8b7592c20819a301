/** Every query on conversations whose memories are to be formed. */
import { sql } from 'kysely';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { allRows } from '../../adapters/database/statement.ts';

/** Conversations whose memories are due, the longest ago first. */
export const listDue = allRows<{ now: number; limit: number }>()((db, p) =>
  db
    .selectFrom('conversations')
    .select([
      'id',
      'organization_id',
      'agent_id',
      'status',
      'created_at',
      'forms_at',
      'formed_through',
    ])
    .where('forms_at', '<=', p('now'))
    .orderBy('forms_at')
    .limit(p('limit')),
);
export type DueConversation = Awaited<ReturnType<typeof listDue>>[number];

/**
 * What the user and the agent have said in a conversation after a message, oldest first: not in trials, nor copies of another
 * conversation's messages, nor results of tools.
 */
export function listFormedMessages(
  db: Handle,
  { id, formed_through }: DueConversation,
  limit: number,
) {
  const messages = db.kysely
    .selectFrom('messages')
    .innerJoin('jobs', (join) =>
      join
        .onRef('jobs.id', '=', 'messages.job_id')
        .onRef('jobs.conversation_id', '=', 'messages.conversation_id'),
    )
    .leftJoin('skills', (join) =>
      join
        .onRef('skills.category', '=', 'jobs.skill_category')
        .onRef('skills.skill_name', '=', 'jobs.skill_name')
        .onRef('skills.version', '=', 'jobs.skill_version'),
    )
    .select([
      'messages.id',
      'messages.role',
      'messages.content',
      'messages.data',
      'skills.task_field',
      'jobs.api_key_id',
      'jobs.user_id',
      'jobs.for_user',
    ])
    .where('messages.conversation_id', '=', id)
    .where('jobs.agent_overrides', 'is', null)
    .where('jobs.erased_at', 'is', null)
    .where(({ and, eb, or }) =>
      or([
        // Not those that no guard could judge: they would fail the job, too.
        and([eb('messages.role', '=', 'user'), eb('messages.dialogue', '>=', 0)]),
        and([eb('messages.role', '=', 'assistant'), eb('messages.dialogue', '=', 1)]),
      ]),
    )
    .limit(limit);
  // Of a conversation that was never read, the newest.
  return formed_through === null
    ? messages.orderBy('messages.id', 'desc').execute()
    : messages.where('messages.id', '>', formed_through).orderBy('messages.id').execute();
}
export type FormedMessage = Awaited<ReturnType<typeof listFormedMessages>>[number];

/**
 * Sets when memories are formed next, null for not before a run ends, and up to which message they have been; false where
 * the conversation has gone on, or another process was first.
 */
export async function moveForming(
  tx: Transaction,
  { id, forms_at, formed_through: before }: DueConversation,
  next: { readonly formsAt: number | null; readonly through: string | null },
): Promise<boolean> {
  const moved = await tx.kysely
    .updateTable('conversations')
    .set({ forms_at: next.formsAt, formed_through: next.through })
    .where('id', '=', id)
    .where('forms_at', '=', forms_at)
    .where(sql<boolean>`coalesce(formed_through, '') = ${before ?? ''}`)
    .executeTakeFirst();
  return Number(moved.numUpdatedRows) > 0;
}
