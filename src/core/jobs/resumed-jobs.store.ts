/** Reads whether the record of a job may be resumed. */
import type { Transaction } from '../../adapters/database/database.ts';
import { idIn } from '../../adapters/database/ids-in.ts';
import { allRows, listOf } from '../../adapters/database/statement.ts';

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
