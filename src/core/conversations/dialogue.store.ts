/** The messages of a conversation as models are sent them. */
import { type ExpressionBuilder, type SqlBool, sql } from 'kysely';
import type { Handle } from '../../adapters/database/database.ts';
import { idIn, isIn } from '../../adapters/database/ids-in.ts';
import { fittingRows } from '../../adapters/database/page-bytes.ts';
import { allRows, listOf, statement } from '../../adapters/database/statement.ts';
import type { Tables } from '../../adapters/database/tables.ts';

interface OfDialogue {
  conversation_id: string;
  exceptJobIds: readonly string[];
}

const dialogueSizes = statement<OfDialogue & { limit: number }>()((db, p, dialect) =>
  db
    .selectFrom('messages')
    .select(['id', sql<number>`octet_length(coalesce(data, content))`.as('bytes')])
    .where('conversation_id', '=', p('conversation_id'))
    .where(sql<SqlBool>`not ${isIn(dialect, sql`job_id`, listOf(p, 'exceptJobIds'))}`)
    .where(isDialogue)
    .orderBy('id', 'desc')
    .limit(p('limit')),
);

const dialogue = statement<OfDialogue & { oldest: string }>()((db, p, dialect) =>
  db
    .selectFrom('messages')
    .select((eb) => [
      'id',
      'job_id',
      'role',
      'data',
      'dialogue',
      sql<string>`case when data is null then content else '' end`.as('content'),
      sql<string | null>`case when data is null then ${taskField(eb)} end`.as('task_field'),
      hasOtherGuards(eb).as('has_other_guards'),
    ])
    .where('conversation_id', '=', p('conversation_id'))
    .where('id', '>=', p('oldest'))
    .where(sql<SqlBool>`not ${isIn(dialect, sql`job_id`, listOf(p, 'exceptJobIds'))}`)
    .where(isDialogue)
    .orderBy('id'),
);

/** The field of a message that holds the task, if the message is the input of its job. */
const taskField = (eb: ExpressionBuilder<Tables, 'messages'>) =>
  eb
    .selectFrom('jobs')
    .innerJoin('skills', (join) =>
      join
        .onRef('skills.category', '=', 'jobs.skill_category')
        .onRef('skills.skill_name', '=', 'jobs.skill_name')
        .onRef('skills.version', '=', 'jobs.skill_version'),
    )
    .whereRef('jobs.id', '=', 'messages.job_id')
    .select('skills.task_field');

/** 1 where the job of a message is a trial with guards of its own. */
const hasOtherGuards = (eb: ExpressionBuilder<Tables, 'messages'>) =>
  eb
    .selectFrom('jobs')
    .whereRef('jobs.id', '=', 'messages.job_id')
    .select(sql<number>`case when agent_overrides like '%"guards":%' then 1 else 0 end`.as('is'));

// The role is looked at first: it lies before a content that may be long, the other column after it.
// A summary in the dialogue is a 3 (`summaryMark`).
const isDialogue = sql<SqlBool>`(role = 'user' or dialogue in (1, 3))`;

/**
 * The messages to and from the agent in other jobs of a conversation, oldest first: of the newest
 * `limit` messages the newest that come to at most `bytesMax`, and whether there are older ones. A user's
 * message has no data: it is the input of its job, whose skill names the field of the task; `dialogue` of one that guards have
 * judged is 1, and -1 where they could not. `has_other_guards` is 1 for what a trial with guards of its own has left.
 */
export async function listDialogue(
  db: Handle,
  conversationId: string,
  exceptJobIds: readonly string[],
  { limit, bytesMax }: { limit: number; bytesMax: number },
) {
  const of = { conversation_id: conversationId, exceptJobIds };
  const sizes = await db.all(dialogueSizes, { ...of, limit: limit + 1 });
  const newest = sizes.slice(0, limit);
  const kept = newest.slice(0, fittingRows(newest, bytesMax));
  const oldest = kept.at(-1)?.id;
  const messages = oldest === undefined ? [] : await db.all(dialogue, { ...of, oldest });
  return { messages, isCut: kept.length < sizes.length };
}

/** Messages of a conversation as models take them. */
export const listData = allRows<{ conversationId: string; ids: readonly string[] }>()(
  (db, p, dialect) =>
    db
      .selectFrom('messages')
      .select(['id', 'data'])
      .where('conversation_id', '=', p('conversationId'))
      .where(idIn(dialect, listOf(p, 'ids')))
      .where('data', 'is not', null),
);
