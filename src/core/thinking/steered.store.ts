/** The query on the messages that have steered a run. */
import { sql } from 'kysely';
import { isIn } from '../../adapters/database/ids-in.ts';
import { allRows, listOf } from '../../adapters/database/statement.ts';

/** The messages of users that the runs of jobs have taken, in order. Its own task has no data. */
export const listSteered = allRows<{
  conversation_id: string;
  job_ids: readonly string[];
}>()((db, p, dialect) =>
  db
    .selectFrom('messages')
    .select(['id', 'data'])
    .where('conversation_id', '=', p('conversation_id'))
    // The role lies before a content that may be long.
    .where('role', '=', sql.lit('user'))
    .where(isIn(dialect, sql`job_id`, listOf(p, 'job_ids')))
    .where('data', 'is not', null)
    .orderBy('id'),
);
