/**
 * What waits in the queues of jobs. Counts are those that are kept beside the rows; of the rows themselves each query reads a
 * bounded number, by an index: the longest due and the next ones of each organization.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Handle } from '../../../adapters/database/database.ts';
import { isIn, listValue } from '../../../adapters/database/ids-in.ts';
import type { JobStatus, TriggerType } from '../../../adapters/database/tables.ts';
import { dueSince } from '../turns/waiting.store.ts';

/** Whose jobs: of one skill and agent. */
export interface JobKind {
  readonly organization_id: string;
  readonly agent_id: string;
  readonly skill_category: string;
  readonly skill_name: string;
  readonly skill_version: string;
  readonly trigger_type: TriggerType;
}

export interface CountedKind extends JobKind {
  readonly status: JobStatus;
  readonly n: number;
}

/** A job that waits for a slot, or for its time. */
export interface WaitingJob extends JobKind {
  readonly id: string;
  /** Its place in `priorities`. */
  readonly priority: number;
  readonly due_at: number;
  /** The gate at which it waits for a place; null for the others. */
  readonly held_by: string | null;
}

/** A running job, a call of which waits for a place. */
export interface CallingJob extends JobKind {
  readonly gate: string;
}

const kind = [
  'organization_id',
  'agent_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'trigger_type',
] as const;
const kindColumns = sql.join(kind.map((name) => sql.ref(name)));
const columns = sql.join(
  ['id', ...kind, 'priority', 'due_at', 'held_by'].map((name) => sql.ref(`jobs.${name}`)),
);

/**
 * How many jobs of the organizations have not ended, by kind and status. It takes `rowsMax` of the kept counts at most; `isCut`
 * says whether there are more. A count is the sum of several rows, some of them negative, so one that may be cut is left out.
 */
export async function countUnendedKinds(
  { kysely, dialect }: Handle,
  ids: readonly string[],
  rowsMax: number,
): Promise<{ kinds: CountedKind[]; isCut: boolean }> {
  // SQLite, which knows little of its rows, would take the primary key and walk past the ended ones.
  const counts =
    dialect === 'sqlite' ? sql`job_counts indexed by job_counts_unended_of` : sql`job_counts`;
  const { rows } = await sql<
    CountedKind & { rows_read: number }
  >`select ${kindColumns}, status, sum(count) as n,
      count(*) as rows_read
    from (select ${kindColumns}, status, count from ${counts}
      where ${isIn(dialect, sql`organization_id`, listValue(ids))}
        and status in ('queued', 'active', 'waiting')
      order by ${kindColumns}, status limit ${rowsMax}) as found
    group by ${kindColumns}, status order by ${kindColumns}, status`.execute(kysely);
  const rowsRead = rows.reduce((sum, { rows_read }) => sum + Number(rows_read), 0);
  const isCut = rowsRead >= rowsMax;
  const kinds = (isCut ? rows.slice(0, -1) : rows).map(({ rows_read: _, ...row }) => ({
    ...row,
    n: Number(row.n),
  }));
  return { kinds: kinds.filter(({ n }) => n > 0), isCut };
}

export const givenIds = ({ dialect }: Handle, ids: readonly string[]) =>
  dialect === 'sqlite'
    ? sql`(select value as id from json_each(${listValue(ids)}))`
    : sql`(select json_array_elements_text(${listValue(ids)}::json) as id)`;

/** The exact expression of the index of queued jobs. */
export const queued = sql`status || '' = 'queued'`;

const firstIn = (selected: RawBuilder<unknown>, range: RawBuilder<SqlBool>, limit: number) =>
  sql`select ${selected} from jobs
    where organization_id = asked.id and ${queued} and ${range} order by run_at limit ${limit}`;

/** Of each of the organizations so many queued jobs of a range of times, in their order. */
async function firstOfEach(
  db: Handle,
  ids: readonly string[],
  range: RawBuilder<SqlBool>,
  ofEach: number,
): Promise<WaitingJob[]> {
  const found =
    db.dialect === 'sqlite'
      ? sql<WaitingJob>`select ${columns} from ${givenIds(db, ids)} as asked
          cross join jobs on jobs.id in (${firstIn(sql`id`, range, ofEach)})`
      : sql<WaitingJob>`select jobs.* from ${givenIds(db, ids)} as asked
          cross join lateral (${firstIn(columns, range, ofEach)}) as jobs`;
  const { rows } = await found.execute(db.kysely);
  return rows
    .map((row) => ({ ...row, due_at: Number(row.due_at) }))
    .toSorted((a, b) => a.due_at - b.due_at);
}

/** The longest due queued jobs of each of the organizations, and the next ones that are not due yet. */
export async function findFirst(
  db: Handle,
  ids: readonly string[],
  now: number,
  ofEach: number,
): Promise<{ due: WaitingJob[]; later: WaitingJob[] }> {
  const [due, later] = await Promise.all([
    firstOfEach(db, ids, isOn('due', now), ofEach),
    firstOfEach(db, ids, isOn('later', now), ofEach),
  ]);
  return { due, later };
}

/** Which queued jobs: those that are due, and those that begin later. */
export type Side = 'due' | 'later';
const isOn = (side: Side, now: number) =>
  side === 'due' ? sql<SqlBool>`run_at <= ${now}` : sql<SqlBool>`run_at > ${now}`;

/** How many queued jobs of each of the organizations are on a side, counted to `max`. */
export async function countQueued(
  db: Handle,
  ids: readonly string[],
  side: Side,
  now: number,
  max: number,
): Promise<Map<string, number>> {
  const { rows } = await sql<{ id: string; n: number }>`select asked.id,
    (select count(*) from (select 1 from jobs
      where organization_id = asked.id and ${queued} and ${isOn(side, now)} limit ${max}) as counted) as n
    from ${givenIds(db, ids)} as asked`.execute(db.kysely);
  return new Map(rows.map(({ id, n }) => [id, Number(n)]));
}

export interface QueuedKind extends JobKind {
  readonly n: number;
  /** When the first of them begins. */
  readonly first: number;
}

/** The first `ofEach` queued jobs of each of the organizations on one side, counted by kind. */
export async function countQueuedKinds(
  db: Handle,
  ids: readonly string[],
  side: Side,
  now: number,
  ofEach: number,
): Promise<QueuedKind[]> {
  if (ids.length === 0) return [];
  const first = firstIn(
    sql.join([...kind, 'run_at'].map((name) => sql.ref(name))),
    isOn(side, now),
    ofEach,
  );
  const found =
    db.dialect === 'sqlite'
      ? sql`${givenIds(db, ids)} as asked cross join jobs
          on jobs.id in (${firstIn(sql`id`, isOn(side, now), ofEach)})`
      : sql`${givenIds(db, ids)} as asked cross join lateral (${first}) as jobs`;
  const { rows } = await sql<QueuedKind>`select ${kindColumns}, count(*) as n, min(run_at) as first
    from ${found} group by ${kindColumns}`.execute(db.kysely);
  return rows.map((row) => ({ ...row, n: Number(row.n), first: Number(row.first) }));
}

/** Jobs whose waits have ended, which wait for a slot to go on; so many at most, of all organizations where it is null. */
export async function findWoken(
  db: Handle,
  organizationId: string | null,
  now: number,
  limit: number,
): Promise<WaitingJob[]> {
  const among =
    organizationId === null
      ? sql`status = 'waiting'`
      : sql`organization_id = ${organizationId} and status || '' = 'waiting'`;
  const { rows } = await sql<WaitingJob>`select ${columns} from jobs
    where ${among} and due_at <= ${now} order by due_at limit ${limit}`.execute(db.kysely);
  return rows.map((row) => ({ ...row, due_at: dueSince(Number(row.due_at)) }));
}

/** SQLite, which knows little of its rows, would walk past all queued jobs. */
const scheduledJobs = ({ dialect }: Handle) =>
  dialect === 'sqlite' ? sql`jobs indexed by jobs_due_scheduled` : sql`jobs`;
const scheduled = sql<SqlBool>`status = 'queued' and trigger_type = 'scheduled'`;

/**
 * Of all organizations and each queue: its queued job that has been due the longest. Of those that no schedule has started it is
 * found among so many jobs that have been due the longest, or not at all.
 */
export async function findOldest(db: Handle, now: number, readMax: number) {
  type Oldest = { id: string; due_at: number; priority: number };
  const direct = sql<Oldest>`select id, due_at, priority from (
      select id, due_at, priority, trigger_type from jobs
      where status = 'queued' and due_at <= ${now} order by due_at limit ${readMax}) as found
    where trigger_type <> 'scheduled' order by due_at limit 1`;
  const bySchedule = sql<Oldest>`select id, due_at, priority from ${scheduledJobs(db)}
    where ${scheduled} and due_at <= ${now} order by due_at limit 1`;
  const [ofClients, ofSchedules] = await Promise.all([
    direct.execute(db.kysely),
    bySchedule.execute(db.kysely),
  ]);
  return { 'skill-execution': ofClients.rows[0], 'scheduled-jobs': ofSchedules.rows[0] };
}

/**
 * Of all organizations and each queue: how many queued jobs are due and begin later, counted to `max` in both together. Where
 * these are cut, those that no schedule has started are the ones among the counted jobs.
 */
export async function countQueues(db: Handle, now: number, max: number) {
  const count = async (side: Side, of: RawBuilder<unknown>) => {
    const range = side === 'due' ? sql`due_at <= ${now}` : sql`due_at > ${now}`;
    const { rows } = await sql<{ n: number; direct: number }>`select count(*) as n,
        count(case when trigger_type <> 'scheduled' then 1 end) as direct
      from (select trigger_type from ${of} and ${range} order by due_at limit ${max}) as counted`.execute(
      db.kysely,
    );
    return { n: Number(rows[0]?.n ?? 0), direct: Number(rows[0]?.direct ?? 0) };
  };
  const all = sql`jobs where status = 'queued'`;
  const planned = sql`${scheduledJobs(db)} where ${scheduled}`;
  const [due, dueByPlan, later, laterByPlan] = await Promise.all([
    count('due', all),
    count('due', planned),
    count('later', all),
    count('later', planned),
  ]);
  return {
    'skill-execution': {
      due: due.direct,
      later: later.direct,
      isCut: due.n >= max || later.n >= max,
    },
    'scheduled-jobs': {
      due: dueByPlan.n,
      later: laterByPlan.n,
      isCut: dueByPlan.n >= max || laterByPlan.n >= max,
    },
  };
}

/** Running jobs whose calls wait for places, of all organizations where it is null; those that wait the longest. */
export function findCalling(
  { kysely }: Handle,
  organizationId: string | null,
  limit: number,
): Promise<CallingJob[]> {
  return (
    kysely
      .selectFrom('places')
      .innerJoin('jobs', 'jobs.id', 'places.job_id')
      .select(['places.gate', ...kind.map((name) => `jobs.${name}` as const)])
      // A literal, for its index.
      .where(sql<SqlBool>`places.is_held = 0`)
      .$if(organizationId !== null, (all) =>
        all.where('places.organization_id', '=', organizationId ?? ''),
      )
      .orderBy('places.since')
      .limit(limit)
      .execute()
  );
}
