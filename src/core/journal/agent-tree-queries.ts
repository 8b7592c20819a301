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

/** The tokens of the tree of agents at whose top a job is. */
export interface TreeUse {
  /** Jobs of other agents in it. */
  readonly jobs: number;
  /** Reported, and estimated in the place of what was not. */
  readonly used: number;
  /** Reserved by calls under way. */
  readonly held: number;
  /** The oldest job that the top has started for another agent and that has not ended; null without any. */
  readonly oldest: string | null;
}

/**
 * The tokens of all calls of a job and of the jobs of other agents below it, with what these have started. A job that the
 * run's own code started has the same agent and is no part of it.
 */
export async function readTreeUse(
  { kysely, dialect }: Handle,
  { id, agent_id }: JobAndAgent,
): Promise<TreeUse> {
  // Each way keeps the planner from walking through all jobs, as in `src/core/jobs/families.store.ts`.
  const children =
    dialect === 'sqlite'
      ? sql`cross join jobs as child on child.parent_job_id = tree.id`
      : sql`cross join lateral (select id from jobs where parent_job_id = tree.id) as child`;
  const steps =
    dialect === 'sqlite'
      ? sql`cross join job_steps as step on step.job_id = job.id`
      : sql`cross join lateral (select * from job_steps where job_id = job.id) as step`;
  const { rows } = await sql<
    { [K in Exclude<keyof TreeUse, 'oldest'>]: number | string | null } & Pick<TreeUse, 'oldest'>
  >`
    with recursive tree(id) as (
      select id from jobs where parent_job_id = ${id} and agent_id <> ${agent_id}
      union all select child.id from tree ${children}
    )
    select (select count(*) from tree) as jobs,
      (select min(id) from jobs where parent_job_id = ${id} and agent_id <> ${agent_id}
        and status in ('queued', 'active', 'waiting')) as oldest,
      sum(case when status = 'active' then 0 else
        coalesce(prompt_tokens, 0) + coalesce(completion_tokens, 0) + estimated end) as used,
      sum(case when status = 'active' then reserved else 0 end) as held
    from (select id from tree union all select cast(${id} as text)) as job ${steps}
    where kind in ('model', 'summary')`.execute(kysely);
  const [use] = rows;
  return {
    jobs: Number(use?.jobs ?? 0),
    used: Number(use?.used ?? 0),
    held: Number(use?.held ?? 0),
    oldest: use?.oldest ?? null,
  };
}
