/** The query on the messages that have steered a run. */
import { sql } from 'kysely';
import { allRows } from '../../adapters/database/statement.ts';

/** The messages of users that a job's run has taken, in order. Its own task has no data. */
export const listSteered = allRows<{ conversation_id: string; job_id: string }>()((db, p) =>
  db
    .selectFrom('messages')
    .select(['id', 'data'])
    .where('conversation_id', '=', p('conversation_id'))
    // The role lies before a content that may be long.
    .where('role', '=', sql.lit('user'))
    .where('job_id', '=', p('job_id'))
    .where('data', 'is not', null)
    .orderBy('id'),
);
