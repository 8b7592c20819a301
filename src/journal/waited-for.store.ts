/** What the waits of a job wait for: an event, a decision of a person, another job. */
import type { Handle } from '../database/database.ts';

/** The events that open waits of a job wait for. */
export function listEventsWaitedFor({ kysely }: Handle, jobId: string) {
  return kysely
    .selectFrom('event_waits')
    .select(['n', 'event', 'key'])
    .where('job_id', '=', jobId)
    .execute();
}

/** The approvals that steps of a job asked for. */
export function listApprovalsOfSteps({ kysely }: Handle, jobId: string, steps: readonly number[]) {
  return kysely
    .selectFrom('approvals')
    .select(['n', 'id', 'status'])
    .where('job_id', '=', jobId)
    .where('n', 'in', steps)
    .execute();
}

/** The jobs that steps of a job started. */
export async function listJobsOfSteps({ kysely }: Handle, jobId: string, steps: readonly number[]) {
  const rows = await kysely
    .selectFrom('jobs')
    .select(['parent_step as n', 'id', 'status', 'skill_category', 'skill_version', 'skill_name'])
    .where('parent_job_id', '=', jobId)
    .where('parent_step', 'in', steps)
    .execute();
  return rows.map(({ n, ...row }) => ({ n: n as number, ...row }));
}
