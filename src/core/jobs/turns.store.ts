/**
 * The due jobs whose turn may be next, and the organizations that have any. Both walk an index that holds the queued and
 * waiting jobs of one queue by organization, key and priority: from one group of equal ones they skip to the next, so they
 * read in proportion to groups and to what is claimed, never to how many jobs wait.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Dialect, Handle, Transaction } from '../../adapters/database/database.ts';
import { rowsIn, rowsParams, type Types } from '../../adapters/database/rows-in.ts';
import { statement } from '../../adapters/database/statement.ts';

/** Due jobs that are read of one organization: the next claim goes on behind the key that had the last turn. */
const stepsMax = 200;
/**
 * Rows that are read for them: more than there are priorities of the most API keys, of each of which the first job may be
 * due later. Beyond that many the jobs behind wait until some of these have begun.
 */
const rowsMax = 4_096;

type JobQueue = 'skill-execution' | 'scheduled-jobs';

/** The conditions of the indexes `jobs_turns` and `jobs_turns_scheduled`. */
const inQueue: Record<JobQueue, RawBuilder<SqlBool>> = {
  'skill-execution': sql`status in ('queued', 'waiting') and held_by is null and trigger_type <> 'scheduled'`,
  'scheduled-jobs': sql`status in ('queued', 'waiting') and held_by is null and trigger_type = 'scheduled'`,
};

/** SQLite, which knows little of its rows, would take other indexes for some of the steps. */
const indexed = (dialect: Dialect, queue: JobQueue) => {
  if (dialect === 'postgres') return sql`jobs`;
  return queue === 'scheduled-jobs'
    ? sql`jobs indexed by jobs_turns_scheduled`
    : sql`jobs indexed by jobs_turns`;
};

/**
 * The first job behind the group of `walk`: of the next priority, else of the next key. Not one comparison of both, for which
 * SQLite walks past the whole group.
 */
const nextGroup = (jobs: RawBuilder<unknown>, waiting: RawBuilder<SqlBool>) => sql`
  (select id from ${jobs} where organization_id = walk.organization_id and ${waiting}
    and api_key_id = walk.api_key_id and priority > walk.priority
  order by priority, due_at, id limit 1),
  (select id from ${jobs} where organization_id = walk.organization_id and ${waiting}
    and api_key_id > walk.api_key_id
  order by api_key_id, priority, due_at, id limit 1)`;

interface Place {
  readonly organization_id: string;
  /** Keys behind this one are read first, then the others. */
  readonly after_key: string;
}

const types: Types<Place> = { organization_id: 'text', after_key: 'text' };

/** PostgreSQL would rather join all jobs to the few that a walk names. */
const jobOf = (dialect: Dialect, id: RawBuilder<unknown>) =>
  dialect === 'sqlite'
    ? sql`jobs on jobs.id = ${id}`
    : sql`lateral (select id, organization_id, api_key_id, priority, due_at, epoch, status, started_at,
        expires_at from jobs where id = ${id} limit 1) as jobs on true`;

interface Step {
  id: string;
  organization_id: string;
  due_at: number;
}

interface StepOfGroup extends Step {
  api_key_id: string;
  priority: number;
  /** Jobs of the group so far that may begin. */
  nth: number;
  /** Those of the walk so far. */
  steps: number;
}

const dueOf = (queue: JobQueue) => {
  const waiting = inQueue[queue];
  return statement<Place & { due_by: number; now: number; of_group: number }>()(
    (db, p, dialect) => {
      const jobs = indexed(dialect, queue);
      const given = rowsIn<Place>(dialect, (column) => p(column), types);
      const dueBy = dialect === 'sqlite' ? p('due_by') : sql`${p('due_by')}::bigint`;
      const ofGroup = dialect === 'sqlite' ? p('of_group') : sql`${p('of_group')}::integer`;
      const now = dialect === 'sqlite' ? p('now') : sql`${p('now')}::bigint`;
      // Like the condition of the claim.
      const ready = sql`case when jobs.due_at <= ${dueBy} and (jobs.status = 'waiting' or jobs.expires_at is null
      or jobs.started_at is not null or jobs.expires_at > ${now}) then 1 else 0 end`;
      const first = (behind: RawBuilder<unknown>) => sql`(
      select id from ${jobs} where organization_id = given.organization_id and ${waiting}
        and api_key_id > ${behind}
      order by api_key_id, priority, due_at, id limit 1)`;
      const steps = sql<StepOfGroup>`(
      with recursive walk(id, organization_id, api_key_id, priority, due_at, ready, nth, steps, rows_read, to_key) as (
        select jobs.id, jobs.organization_id, jobs.api_key_id, jobs.priority, jobs.due_at,
          ${ready}, ${ready}, ${ready}, 1, start.to_key
        from (
          select ${first(sql`given.after_key`)} as id, null as to_key from ${given}
          union all
          select ${first(sql`''`)}, given.after_key from ${given}
        ) as start join ${jobOf(dialect, sql`start.id`)}
        where start.to_key is null or jobs.api_key_id <= start.to_key
        union all
        select jobs.id, jobs.organization_id, jobs.api_key_id, jobs.priority, jobs.due_at, ${ready},
          case when jobs.api_key_id = walk.api_key_id and jobs.priority = walk.priority
            then walk.nth else 0 end + ${ready},
          walk.steps + ${ready}, walk.rows_read + 1, walk.to_key
        from walk join ${jobOf(
          dialect,
          sql`coalesce(
          case when walk.due_at <= ${dueBy} and walk.nth < ${ofGroup} then (
            select id from ${jobs} where organization_id = walk.organization_id and ${waiting}
              and api_key_id = walk.api_key_id and priority = walk.priority
              and (due_at, id) > (walk.due_at, walk.id)
            order by due_at, id limit 1) end,
          ${nextGroup(jobs, waiting)})`,
        )}
        where walk.steps < ${sql.lit(stepsMax)} and walk.rows_read < ${sql.lit(rowsMax)}
          and (walk.to_key is null or jobs.api_key_id <= walk.to_key)
      ) select * from walk where ready = 1)`.as<'walk'>(sql`walk`);
      return db
        .selectFrom(steps)
        .select(['id', 'organization_id', 'api_key_id', 'priority', 'due_at', 'nth', 'steps']);
    },
  );
};

const dueJobs = {
  'skill-execution': dueOf('skill-execution'),
  'scheduled-jobs': dueOf('scheduled-jobs'),
};

/**
 * The due jobs of organizations that have not expired, the longest due of each key and priority first, at most `ofGroup` of
 * each. `cut` has the organizations of which not everything was read.
 */
export async function findTurns(
  tx: Transaction,
  queue: JobQueue,
  places: readonly Place[],
  {
    now,
    dueBy,
    ofGroup,
  }: { readonly now: number; readonly dueBy: number; readonly ofGroup: number },
) {
  const found: StepOfGroup[] = [];
  for (const place of rowsParams(tx.dialect, places, types)) {
    const params = { ...(place as Place), due_by: dueBy, now, of_group: ofGroup };
    found.push(...(await tx.all(dueJobs[queue], params)));
  }
  const due = found.map((row) => ({ ...row, due_at: Number(row.due_at) }));
  const isCut = (row: (typeof due)[number]) => row.steps >= stepsMax || row.nth >= ofGroup;
  return { due, cut: due.filter(isCut).map(({ organization_id }) => organization_id) };
}

const organizationsOf = (queue: JobQueue) => {
  const waiting = inQueue[queue];
  return statement<{ after: string; due_by: number; limit: number }>()((db, p, dialect) => {
    const jobs = indexed(dialect, queue);
    const dueBy = dialect === 'sqlite' ? p('due_by') : sql`${p('due_by')}::bigint`;
    const after = dialect === 'sqlite' ? p('after') : sql`${p('after')}::text`;
    const limit = dialect === 'sqlite' ? p('limit') : sql`${p('limit')}::integer`;
    const order = sql`order by organization_id, api_key_id, priority, due_at, id limit 1`;
    const steps = sql<Step & { epoch: number }>`(
      with recursive walk(id, organization_id, api_key_id, priority, due_at, epoch, steps) as (
        select id, organization_id, api_key_id, priority, due_at, epoch, 1 from jobs
        where id = (select id from ${jobs} where organization_id > ${after} and ${waiting} ${order})
        union all
        select jobs.id, jobs.organization_id, jobs.api_key_id, jobs.priority, jobs.due_at, jobs.epoch,
          walk.steps + 1
        from walk join ${jobOf(
          dialect,
          sql`coalesce(
          case when walk.due_at > ${dueBy} then coalesce(${nextGroup(jobs, waiting)}) end,
          (select id from ${jobs} where organization_id > walk.organization_id and ${waiting} ${order}))`,
        )}
        where walk.steps < ${limit}
      ) select * from walk)`.as<'walk'>(sql`walk`);
    return db.selectFrom(steps).select(['id', 'organization_id', 'due_at', 'epoch']);
  });
};

const organizations = {
  'skill-execution': organizationsOf('skill-execution'),
  'scheduled-jobs': organizationsOf('scheduled-jobs'),
};

/**
 * One due job of each organization behind `after` that has any; reads `limit` groups at most. `next` is where the next call
 * goes on.
 */
export async function findDueOrganizations(
  db: Handle,
  queue: JobQueue,
  {
    after,
    dueBy,
    limit,
  }: { readonly after: string; readonly dueBy: number; readonly limit: number },
) {
  const steps = await db.all(organizations[queue], { after, due_by: dueBy, limit });
  const isCut = steps.length >= limit;
  return {
    due: steps.filter(({ due_at }) => Number(due_at) <= dueBy),
    next: isCut ? (steps.at(-1)?.organization_id ?? '') : '',
  };
}
