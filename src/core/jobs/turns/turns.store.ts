/**
 * The due jobs whose turn may be next, and the organizations that have any. Both walk an index that holds the queued and
 * waiting jobs of one queue by organization, priority and key: from one group of equal ones they skip to the next, so they
 * read in proportion to groups and to what is claimed, never to how many jobs wait. The priority comes before the key, so that
 * no job waits for one of a lower priority, however many keys the organization has.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Dialect, Handle, Transaction } from '../../../adapters/database/database.ts';
import { rowsIn, rowsParams, type Types } from '../../../adapters/database/rows-in.ts';
import { statement } from '../../../adapters/database/statement.ts';

/** Keys that are read of one priority: the next claim goes on behind the key that had the last turn. */
const keysMax = 64;
/** As many where the oldest job of a lower priority has its turn, whose key may be any. */
const keysOfLowerMax = 200;
/**
 * Rows that are read for them: more than the most API keys, of each of which the first job may be due later. Beyond that many
 * the jobs behind wait until some of these have begun.
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

/** The order of these indexes within an organization. */
const inOrder = sql`order by priority, api_key_id, due_at, id limit 1`;

interface Place {
  readonly organization_id: string;
  /** For each priority: keys behind this one are read first, then the others. */
  readonly after_high: string;
  readonly after_normal: string;
  readonly after_low: string;
  /** How many keys are read of the lower priorities. */
  readonly keys_of_lower: number;
}

const types: Types<Place> = {
  organization_id: 'text',
  after_high: 'text',
  after_normal: 'text',
  after_low: 'text',
  keys_of_lower: 'integer',
};

/** By their place in `priorities`. */
const afterOf = ['after_high', 'after_normal', 'after_low'] as const;

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
  /** Its number among the jobs of its key and priority that may begin. */
  nth: number;
  /** How many of these are read. */
  depth: number;
  /** Whether keys behind it may not have been read. */
  is_last: number;
}

/**
 * The first job behind `after_key` of one priority, and the first of the keys up to that. A walk begins with each of them and
 * reads one job of each key.
 */
const startsOf = (
  first: (priority: number, behind: RawBuilder<unknown>) => RawBuilder<unknown>,
  given: RawBuilder<unknown>,
  priority: number,
) => {
  const after = sql.ref(`given.${afterOf[priority]}`);
  const keys = priority === 0 ? sql.lit(keysMax) : sql.ref('given.keys_of_lower');
  const none = sql`cast(null as text)`;
  return sql`select ${first(priority, after)} as id, ${none} as to_key, ${keys} as keys_max from ${given}
    union all select ${first(priority, sql`''`)}, ${after}, ${keys} from ${given}`;
};

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
      const first = (priority: number, behind: RawBuilder<unknown>) => sql`(
      select id from ${jobs} where organization_id = given.organization_id and ${waiting}
        and priority = ${sql.lit(priority)} and api_key_id > ${behind}
      order by api_key_id, due_at, id limit 1)`;
      const starts = sql.join(
        afterOf.map((_, priority) => startsOf(first, sql`${given}`, priority)),
        sql` union all `,
      );
      const next = (of: RawBuilder<unknown>) => sql`(
        select id from ${jobs} where organization_id = ${of}.organization_id and ${waiting}
          and priority = ${of}.priority and api_key_id = ${of}.api_key_id
          and (due_at, id) > (${of}.due_at, ${of}.id)
        order by due_at, id limit 1)`;
      const columns = sql`jobs.id, jobs.organization_id, jobs.api_key_id, jobs.priority, jobs.due_at, ${ready}`;
      // Of few keys more jobs are read of each.
      const depth = sql`cast(${ofGroup} + 1 - count(*) over (partition by organization_id, priority) as integer)`;
      const steps = sql<StepOfGroup>`(
      with recursive walk(id, organization_id, api_key_id, priority, due_at, ready, keys, rows_read, to_key, keys_max) as (
        select ${columns}, ${ready}, 1, start.to_key, start.keys_max
        from (${starts}) as start join ${jobOf(dialect, sql`start.id`)}
        where start.to_key is null or jobs.api_key_id <= start.to_key
        union all
        select ${columns}, walk.keys + ${ready}, walk.rows_read + 1, walk.to_key, walk.keys_max
        from walk join ${jobOf(
          dialect,
          sql`coalesce(
          case when walk.ready = 0 and walk.due_at <= ${dueBy} then ${next(sql`walk`)} end,
          (select id from ${jobs} where organization_id = walk.organization_id and ${waiting}
            and priority = walk.priority and api_key_id > walk.api_key_id
          order by api_key_id, due_at, id limit 1))`,
        )}
        where walk.keys < walk.keys_max and walk.rows_read < ${sql.lit(rowsMax)}
          and (walk.to_key is null or jobs.api_key_id <= walk.to_key)
      ), heads as (
        select id, organization_id, api_key_id, priority, due_at, ${depth} as depth,
          case when keys >= keys_max then 1 else 0 end as is_last
        from walk where ready = 1
      ), deep(id, organization_id, api_key_id, priority, due_at, ready, nth, rows_read, depth, is_last) as (
        select id, organization_id, api_key_id, priority, due_at, 1, 1, 1, depth, is_last from heads
        union all
        select ${columns}, deep.nth + ${ready}, deep.rows_read + 1, deep.depth, deep.is_last
        from deep join ${jobOf(dialect, next(sql`deep`))}
        where deep.nth < deep.depth and deep.due_at <= ${dueBy} and deep.rows_read < ${sql.lit(rowsMax)}
      ) select id, organization_id, api_key_id, priority, due_at, nth, depth, is_last from deep where ready = 1)`.as<'steps'>(
        sql`steps`,
      );
      return db
        .selectFrom(steps)
        .select(['id', 'organization_id', 'api_key_id', 'priority', 'due_at', 'nth', 'depth'])
        .select('is_last')
        .orderBy('nth');
    },
  );
};

const dueJobs = {
  'skill-execution': dueOf('skill-execution'),
  'scheduled-jobs': dueOf('scheduled-jobs'),
};

/** An organization whose jobs are to be read. */
export interface Candidate {
  readonly organization_id: string;
  /** Of each priority the key that had the last turn: those behind it come first. */
  readonly after_keys: readonly string[];
  /** Whether the oldest job of a lower priority may have its turn. */
  readonly isLowerDue: boolean;
}

/**
 * The due jobs of organizations that have not expired: of each priority the first of the next keys, and the longest due
 * further ones where the keys are fewer than `ofGroup`, so that this many can begin. `cut` has the organizations of which
 * not everything was read.
 */
export async function findTurns(
  tx: Transaction,
  queue: JobQueue,
  wanted: readonly Candidate[],
  {
    now,
    dueBy,
    ofGroup,
  }: { readonly now: number; readonly dueBy: number; readonly ofGroup: number },
) {
  const found: StepOfGroup[] = [];
  const places = wanted.map(placeOf);
  for (const place of rowsParams(tx.dialect, places, types)) {
    const params = { ...(place as Place), due_by: dueBy, now, of_group: ofGroup };
    found.push(...(await tx.all(dueJobs[queue], params)));
  }
  const due = found.map((row) => ({ ...row, due_at: Number(row.due_at) }));
  const isCut = (row: (typeof due)[number]) => row.is_last === 1 || row.nth >= row.depth;
  return { due, cut: due.filter(isCut).map(({ organization_id }) => organization_id) };
}

function placeOf({ organization_id, after_keys, isLowerDue }: Candidate): Place {
  const [after_high = '', after_normal = '', after_low = ''] = after_keys;
  const keys_of_lower = isLowerDue ? keysOfLowerMax : keysMax;
  return { organization_id, after_high, after_normal, after_low, keys_of_lower };
}

/**
 * The first job behind the group of `walk`: of the next key, else of the next priority. Not one comparison of both, for which
 * SQLite walks past the whole group.
 */
const nextGroup = (jobs: RawBuilder<unknown>, waiting: RawBuilder<SqlBool>) => sql`
  (select id from ${jobs} where organization_id = walk.organization_id and ${waiting}
    and priority = walk.priority and api_key_id > walk.api_key_id
  order by api_key_id, due_at, id limit 1),
  (select id from ${jobs} where organization_id = walk.organization_id and ${waiting}
    and priority > walk.priority
  ${inOrder})`;

const organizationsOf = (queue: JobQueue) => {
  const waiting = inQueue[queue];
  return statement<{ after: string; due_by: number; limit: number }>()((db, p, dialect) => {
    const jobs = indexed(dialect, queue);
    const dueBy = dialect === 'sqlite' ? p('due_by') : sql`${p('due_by')}::bigint`;
    const after = dialect === 'sqlite' ? p('after') : sql`${p('after')}::text`;
    const limit = dialect === 'sqlite' ? p('limit') : sql`${p('limit')}::integer`;
    const order = sql`order by organization_id, priority, api_key_id, due_at, id limit 1`;
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
