/** What a job that starts another tells of itself and of the jobs above it. */
import { sql } from 'kysely';
import type { Handle, Transaction } from '../database/database.ts';
import { firstRow } from '../database/statement.ts';

/** What a job tells about the child that it is about to start. */
export const findParent = firstRow<{ id: string }, Transaction>()((db, p) =>
  db
    .selectFrom('jobs')
    .select((eb) => [
      'user_id',
      'for_user',
      'depth',
      eb
        .selectFrom('jobs as child')
        .whereRef('child.parent_job_id', '=', 'jobs.id')
        .select((of) => of.fn.countAll<number>().as('n'))
        .as('children'),
    ])
    .where('id', '=', p('id')),
);

/** The agents of a job and of those above it, each once, its own first. */
export async function listAgentsAbove({ kysely }: Handle, jobId: string): Promise<string[]> {
  const { rows } = await sql<{ agent_id: string }>`
    with recursive above(id, parent, agent_id) as (
      select id, parent_job_id, agent_id from jobs where id = ${jobId}
      union all
      select jobs.id, jobs.parent_job_id, jobs.agent_id from above join jobs on jobs.id = above.parent
    ) select agent_id from above order by id desc`.execute(kysely);
  return [...new Set(rows.map(({ agent_id }) => agent_id))];
}
