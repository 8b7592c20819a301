/** The queries on the unended jobs of conversations: one of them runs, and the others wait behind it. */
import { sql } from 'kysely';
import type { Transaction } from '../../../adapters/database/database.ts';
import { isIn } from '../../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf } from '../../../adapters/database/statement.ts';
import { hintedColumns } from '../jobs.store.ts';

/** What all names begin with that hold jobs in conversations. */
export const behindPrefix = 'the job before it in its conversation';

/** What the names begin with by mode. They are shown, without what is behind ` = `. */
export const namesOfModes = {
  interrupt: `${behindPrefix}, which it interrupts = `,
  queue: `${behindPrefix} = `,
  steer: `${behindPrefix}, which it steers = `,
} as const;

/** What holds a job behind an earlier one of its conversation. */
export function behindOthersOf(conversationId: string, mode: keyof typeof namesOfModes = 'queue') {
  return `${namesOfModes[mode]}${conversationId}`;
}

/** What holds a job whose message the run of another one has taken, until that one ends. */
export function deliveredName(jobId: string): string {
  return `${deliveredPrefix}${jobId}`;
}

/** What the names begin with that hold jobs whose messages runs have taken. */
export const deliveredPrefix = `${behindPrefix}, which has its message = `;

/** All that hold jobs that are to run in a conversation. */
export function gatesOfConversation(conversationId: string): string[] {
  return Object.values(namesOfModes).map((name) => `${name}${conversationId}`);
}

/**
 * The jobs of conversations that have begun, or may, and have not ended; each conversation has one at most. It has the last message,
 * because a job that waits behind another one gets its first message when it is let go; or it goes on from the job that has.
 */
export const listRunning = allRows<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('conversations')
    .innerJoin('jobs', (join) =>
      // A fork has messages of jobs of another conversation.
      join.onRef('jobs.conversation_id', '=', 'conversations.id').on(
        'jobs.id',
        '=',
        sql<string>`coalesce(
          (select id from jobs as resumed where resumed.conversation_id = conversations.id
            and resumed.resumes is not null and resumed.due_at is not null order by id limit 1),
          (select job_id from messages where conversation_id = conversations.id
            order by id desc limit 1))`,
      ),
    )
    .select([
      'jobs.id',
      'jobs.conversation_id',
      'jobs.organization_id',
      'jobs.skill_category',
      'jobs.skill_name',
      'jobs.skill_version',
      'jobs.gated',
    ])
    .where(isIn(dialect, sql.ref('conversations.id'), listOf(p, 'ids')))
    .where('jobs.due_at', 'is not', null),
);

/** The jobs that gates of conversations hold: those that interrupt, then the others in the order in which they were accepted. */
export const listWaiting = allRows<{ gates: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('jobs')
    .select(['id', 'conversation_id', 'user_id', 'for_user', 'held_by'])
    .select(sql<number>`octet_length(input)`.as('bytes'))
    .where(isIn(dialect, sql.ref('held_by'), listOf(p, 'gates')))
    .where('status', '=', sql.lit('queued'))
    .orderBy(sql`case when held_by like ${sql.lit(`${namesOfModes.interrupt}%`)} then 0 else 1 end`)
    .orderBy('id'),
);

/** Lets a job go that a gate of its conversation holds; undefined where it is no longer held. */
export const letGo = firstRow<{ id: string; gate: string }, Transaction>()((db, p) =>
  db
    .updateTable('jobs')
    .set({ held_by: null })
    .where('id', '=', p('id'))
    // By its id: no index has this expression.
    .where(sql<boolean>`held_by || '' = ${p('gate')}`)
    .where('status', '=', sql.lit('queued'))
    .returning([...hintedColumns, 'conversation_id', 'epoch', 'run_at', 'input']),
);

/** The gates behind a name, up to another one, that hold jobs. */
export const listGatesBetween = allRows<{ after: string; to: string; limit: number }>()((db, p) =>
  db
    .selectFrom('jobs')
    .select('held_by')
    .distinct()
    .where('held_by', '>', p('after'))
    .where('held_by', '<', p('to'))
    .where('status', '=', sql.lit('queued'))
    .orderBy('held_by')
    .limit(p('limit')),
);
