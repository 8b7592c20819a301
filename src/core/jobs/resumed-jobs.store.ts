/** Reads whether the record of a job may be resumed, and what is in its conversation. */
import { sql } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';
import { idIn, isIn } from '../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf } from '../../adapters/database/statement.ts';

/** Those of the jobs that a later job resumes, or whose conversation has a message of a later job. */
export const listPassed = allRows<{ ids: readonly string[] }, Transaction>()((db, p, dialect) =>
  db
    .selectFrom('jobs')
    .select('id')
    .where(idIn(dialect, listOf(p, 'ids')))
    .where((eb) =>
      eb.or([
        eb.exists(
          eb
            .selectFrom('jobs as later')
            .select('later.id')
            .whereRef('later.retry_of', '=', 'jobs.id')
            .where('later.retry_of', 'is not', null)
            .where('later.resumes', 'is not', null),
        ),
        eb.exists(
          eb
            .selectFrom('messages')
            .select('messages.job_id')
            .whereRef('messages.conversation_id', '=', 'jobs.conversation_id')
            .whereRef('messages.job_id', '>', 'jobs.id'),
        ),
      ]),
    ),
);

/** A message of the users of jobs in their conversation; that of a job that has steered another one is with that one's. */
export const findUserMessage = firstRow<
  { conversation_id: string; ids: readonly string[] },
  Transaction
>()((db, p, dialect) =>
  db
    .selectFrom('messages')
    .select('id')
    .where('conversation_id', '=', p('conversation_id'))
    .where('role', '=', sql.lit('user'))
    .where((eb) =>
      eb.or([
        isIn(dialect, sql.ref('job_id'), listOf(p, 'ids')),
        eb(
          'job_id',
          'in',
          eb
            .selectFrom('jobs')
            .select('delivered_to')
            .where(idIn(dialect, listOf(p, 'ids')))
            .where('delivered_to', 'is not', null)
            .$castTo<{ delivered_to: string }>(),
        ),
      ]),
    )
    .limit(1),
);
