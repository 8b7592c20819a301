/** The objects of a job's waits: an event, a decision of a person, another job. */
import { sql } from 'kysely';
import type { Handle } from '../../adapters/database/database.ts';

/** The events that open waits of a job wait for. */
export function listEventsWaitedFor({ kysely }: Handle, jobId: string) {
  return kysely
    .selectFrom('event_waits')
    .select(['n', 'event', 'key'])
    .where('job_id', '=', jobId)
    .execute();
}

/** The approvals that steps of a job requested. */
export function listApprovalsOfSteps({ kysely }: Handle, jobId: string, steps: readonly number[]) {
  return kysely
    .selectFrom('approvals')
    .select(['n', 'id', 'status'])
    .where('job_id', '=', jobId)
    .where('n', 'in', steps)
    .execute();
}

/** The jobs that steps of a job started, with the sums of their tokens. */
export async function listJobsOfSteps({ kysely }: Handle, jobId: string, steps: readonly number[]) {
  const rows = await kysely
    .selectFrom('jobs')
    .leftJoin('messages', (join) =>
      join
        .onRef('messages.conversation_id', '=', 'jobs.conversation_id')
        .onRef('messages.job_id', '=', 'jobs.id'),
    )
    .select([
      ...(['jobs.parent_step as n', 'jobs.id', 'jobs.agent_id', 'jobs.status'] as const),
      ...(['skill_category', 'skill_version', 'skill_name'] as const),
      sql<number>`coalesce(sum(prompt_tokens), 0)`.as('prompt_tokens'),
      sql<number>`coalesce(sum(completion_tokens), 0)`.as('completion_tokens'),
      sql<number>`coalesce(sum(cache_read_tokens), 0)`.as('cache_read_tokens'),
      sql<number>`coalesce(sum(cache_write_tokens), 0)`.as('cache_write_tokens'),
      sql<number>`coalesce(sum(reasoning_tokens), 0)`.as('reasoning_tokens'),
      sql<number>`coalesce(sum(cost), 0)`.as('cost'),
      sql<number>`coalesce(sum(case when cost is null
        and prompt_tokens + completion_tokens + unreported > 0 then 1 else 0 end), 0)`.as(
        'unpriced',
      ),
      sql<number>`coalesce(max(unreported % 2) + 2 * max(unreported / 2), 0)`.as('unreported'),
    ])
    .where('parent_job_id', '=', jobId)
    .where('parent_step', 'in', steps)
    .groupBy('jobs.id')
    .execute();
  return rows.map(({ n, ...row }) => ({ n: n as number, ...row }));
}
