/** Reads the job that starts another one. */
import type { Transaction } from '../../adapters/database/database.ts';
import { firstRow } from '../../adapters/database/statement.ts';

/** The parts of a job that the child which it starts takes over. */
export const findParent = firstRow<{ id: string }, Transaction>()((db, p) =>
  db
    .selectFrom('jobs')
    .select((eb) => [
      'user_id',
      'for_user',
      'depth',
      'priority',
      'concurrency_key',
      'instruction_values',
      eb
        .selectFrom('jobs as child')
        .whereRef('child.parent_job_id', '=', 'jobs.id')
        .select((of) => of.fn.countAll<number>().as('n'))
        .as('children'),
    ])
    .where('id', '=', p('id')),
);
