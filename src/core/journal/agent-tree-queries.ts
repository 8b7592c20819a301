/** The jobs of a tree of agents, and the tokens that they use. */
import { sql } from 'kysely';
import type { Handle } from '../../adapters/database/database.ts';

/** A job and its agent. */
export interface JobAndAgent {
  readonly id: string;
  readonly agent_id: string;
}

/** The job and those above it, from itself up. */
export async function listJobsAbove({ kysely }: Handle, jobId: string): Promise<JobAndAgent[]> {
  const { rows } = await sql<JobAndAgent>`
    with recursive above(id, parent, agent_id) as (
      select id, parent_job_id, agent_id from jobs where id = ${jobId}
      union all
      select jobs.id, jobs.parent_job_id, jobs.agent_id from above join jobs on jobs.id = above.parent
    ) select id, agent_id from above order by id desc`.execute(kysely);
  return rows;
}

/** The tokens of a branch of a tree of agents: of a job that the top has started for another agent, with those below it. */
export interface BranchUse {
  /** The first job of the branch; null for the top's own calls. */
  readonly branch: string | null;
  /** Whether that job has not ended. */
  readonly isOpen: boolean;
  /** Whether a job of the branch is being run. */
  readonly isActive: boolean;
  /** Reported, and estimated in the place of what was not. */
  readonly used: number;
  /** Reserved by calls under way. */
  readonly held: number;
}

/**
 * The tokens of all calls of a job and of the jobs of other agents below it, with what these have started, the oldest branch
 * first. A job that the run's own code started has the same agent and is no part of it.
 */
export async function readTreeUse(
  { kysely, dialect }: Handle,
  { id, agent_id }: JobAndAgent,
): Promise<BranchUse[]> {
  // Each way keeps the planner from walking through all jobs, as in `src/core/jobs/families.store.ts`.
  const children =
    dialect === 'sqlite'
      ? sql`cross join jobs as child on child.parent_job_id = tree.id`
      : sql`cross join lateral (select id, status from jobs where parent_job_id = tree.id) as child`;
  const steps =
    dialect === 'sqlite'
      ? sql`left join job_steps as step on step.job_id = job.id and kind in ('model', 'summary')`
      : sql`left join lateral (select * from job_steps where job_id = job.id and kind in ('model', 'summary')) as step on true`;
  const { rows } = await sql<{ [K in keyof BranchUse]: number | string | null }>`
    with recursive tree(id, branch, open, status) as (
      select id, id, case when status in ('queued', 'active', 'waiting') then 1 else 0 end, status
      from jobs where parent_job_id = ${id} and agent_id <> ${agent_id}
      union all select child.id, tree.branch, tree.open, child.status from tree ${children}
    )
    select branch, open as "isOpen", max(case when job.status = 'active' then 1 else 0 end) as "isActive",
      sum(case when step.status = 'active' then 0 else
        coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0) + coalesce(estimated, 0) end) as used,
      sum(case when step.status = 'active' then reserved else 0 end) as held
    from (select * from tree union all select cast(${id} as text), null, 0, '') as job ${steps}
    group by branch, open order by branch`.execute(kysely);
  return rows.map(({ branch, isOpen, isActive, used, held }) => ({
    branch: branch as string | null,
    isOpen: Number(isOpen) === 1,
    isActive: Number(isActive) === 1,
    used: Number(used ?? 0),
    held: Number(held ?? 0),
  }));
}
