/** Lists of jobs and how many there are; counts are read off the rows kept for them, never counted. */
import { type RawBuilder, type Selectable, type SqlBool, sql } from 'kysely';
import type { Handle } from '../database/database.ts';
import type { JobStatus, JobsTable, TriggerType } from '../database/tables.ts';
import { idFloor } from '../kernel/ids.ts';

/** What a list of jobs may be narrowed by. */
export interface JobFilters {
  status?: JobStatus | undefined;
  agent_id?: string | undefined;
  skill_category?: string | undefined;
  skill_name?: string | undefined;
  skill_version?: string | undefined;
  trigger_type?: string | undefined;
  conversation_id?: string | undefined;
  /** Milliseconds; jobs of that very moment are not meant. */
  created_after?: number | undefined;
  created_before?: number | undefined;
}

const listedColumns = [
  'id',
  'status',
  'conversation_id',
  'agent_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'created_at',
] as const;
export type ListedJob = Pick<Selectable<JobsTable>, (typeof listedColumns)[number]>;

const timedColumns = [
  ...listedColumns,
  'trigger_type',
  'user_id',
  'attempt',
  'max_attempts',
  'run_at',
  'started_at',
  'finished_at',
  'error',
] as const;
/** With how it went. */
export type TimedJob = Pick<Selectable<JobsTable>, (typeof timedColumns)[number]>;

type Counted = Omit<JobFilters, 'conversation_id' | 'created_after' | 'created_before'>;
type Equal = readonly [keyof Counted, never][];

interface Page {
  readonly limit: number;
  readonly offset: number;
}

/** A page of jobs, newest first, and how many there are in all. */
export function listJobs(
  db: Handle,
  organizationId: string,
  filters: JobFilters,
  page: Page,
): Promise<{ jobs: ListedJob[]; total: number }> {
  return list(db, organizationId, filters, page, listedColumns);
}

/** As `listJobs`, with how each of them went. */
export function listTimedJobs(
  db: Handle,
  organizationId: string,
  filters: JobFilters,
  page: Page,
): Promise<{ jobs: TimedJob[]; total: number }> {
  return list(db, organizationId, filters, page, timedColumns);
}

async function list<Column extends (typeof timedColumns)[number]>(
  db: Handle,
  organizationId: string,
  { conversation_id, created_after, created_before, ...counted }: JobFilters,
  page: Page,
  columns: readonly Column[],
) {
  const equal = Object.entries(counted).filter(
    ([, value]) => value !== undefined,
  ) as Equal[number][];
  let query = db.kysely.selectFrom('jobs').where('organization_id', '=', organizationId);
  for (const [column, value] of equal) query = query.where(column, '=', value);
  if (counted.status === 'failed' || counted.status === 'cancelled') {
    // Says what the status implies already, so that the index on these two is used.
    query = query.where(sql<boolean>`status in ('failed', 'cancelled')`);
  }
  if (counted.status === 'active') {
    // Few at any moment, and the index of due jobs knows them.
    const active = sql<string>`select id from jobs where status = 'active' and due_at is not null`;
    query = query.where(isAmong(db, active));
  }
  if (conversation_id !== undefined) {
    const spoken = sql<string>`select distinct job_id from messages where conversation_id = ${conversation_id}`;
    query = query.where(isAmong(db, spoken));
  }
  if (created_after !== undefined) {
    const from = idFloor(created_after - idsApartMs);
    query = query.where('id', '>=', from).where('created_at', '>', created_after);
  }
  if (created_before !== undefined) {
    const to = idFloor(created_before + idsApartMs);
    query = query.where('id', '<', to).where('created_at', '<', created_before);
  }
  /** What no count is kept of: the index says which rows to look at, and they are counted. */
  const isPart = (conversation_id ?? created_after ?? created_before) !== undefined;
  const { total, kinds } = isPart
    ? { total: await countRows(query), kinds: 0 }
    : await countJobs(db, organizationId, equal);
  const rows = Math.min(page.limit, total - page.offset);
  if (rows <= 0) return { jobs: [], total };
  const newest = query.orderBy('id', 'desc').limit(rows).offset(page.offset);
  if (db.dialect === 'sqlite' || isPart) {
    return { jobs: await newest.select([...columns]).execute(), total };
  }
  const shown = (ids: RawBuilder<string>) =>
    db.kysely
      .selectFrom('jobs')
      .select([...columns])
      .where('organization_id', '=', organizationId)
      .where(isAmong(db, ids))
      .orderBy('id', 'desc')
      .execute();
  const within = { limit: rows, offset: page.offset };
  const byKind = () => shown(newestOfKinds(db, organizationId, equal, within));
  // What the page skips is skipped in the index: its rows are not looked at.
  if (equal.length === 0) return { jobs: await shown(sql`${newest.select('id')}`), total };
  if (kinds <= kindsMax && Math.min(total, kinds * (page.offset + rows)) <= readMax) {
    return { jobs: await byKind(), total };
  }
  if (page.offset + rows > walkedMax) {
    return { jobs: await newest.select([...columns]).execute(), total };
  }
  // What there is much of is mostly met soon; where it is not, because it is long ago, by kind.
  const met = await shown(newestMet(organizationId, equal, within));
  return { jobs: met.length === rows ? met : await byKind(), total };
}

/**
 * What a list is bounded by in time is the ids, which begin with the time they were made at. That is
 * the job's, but for some milliseconds, and more where a clock was set back: ids go on from the last.
 */
const idsApartMs = 60_000;

/** That a job is one of those of a query. PostgreSQL would rather join, and may then walk through all jobs. */
function isAmong({ dialect }: Handle, ids: RawBuilder<string>): RawBuilder<SqlBool> {
  return dialect === 'sqlite'
    ? sql<SqlBool>`id in (${ids})`
    : sql<SqlBool>`id = any (array(${ids}))`;
}

type JobsQuery = ReturnType<ReturnType<typeof jobsQuery>['where']>;
function jobsQuery(db: Handle) {
  return db.kysely.selectFrom('jobs');
}

async function countRows(query: JobsQuery): Promise<number> {
  const row = await query.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst();
  return Number(row?.n ?? 0);
}

/** What jobs are counted by: a kind is one of each. */
const kindColumns = [
  'agent_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'trigger_type',
  'status',
] as const;
/** Kinds whose newest jobs are looked up for a page at once, and ids that are read for it. */
const kindsMax = 1_000;
const readMax = 50_000;
/** Jobs that are walked past to find a page. */
const walkedMax = 10_000;

/** The kinds of which an organization has jobs, with how many. */
function kindsOf(db: Handle, organizationId: string, equal: Equal) {
  let query = db.kysely.selectFrom('job_counts').where('organization_id', '=', organizationId);
  for (const [column, value] of equal) query = query.where(column, '=', value);
  return query
    .select((eb) => [...kindColumns, eb.fn.sum<number>('count').as('n')])
    .groupBy([...kindColumns])
    .having((eb) => eb.fn.sum('count'), '>', 0);
}

/** How many jobs there are, and at most how many kinds: each process counts in rows of its own. */
async function countJobs(
  db: Handle,
  organizationId: string,
  equal: Equal,
): Promise<{ total: number; kinds: number }> {
  let query = db.kysely.selectFrom('job_counts').where('organization_id', '=', organizationId);
  for (const [column, value] of equal) query = query.where(column, '=', value);
  const row = await query
    .select((eb) => [
      eb.fn.sum<number | null>('count').as('total'),
      eb.fn.countAll<number>().as('kinds'),
    ])
    .executeTakeFirst();
  return { total: Number(row?.total ?? 0), kinds: Number(row?.kinds ?? 0) };
}

/** The ids of a page, if it lies among the newest jobs of all. */
function newestMet(
  organizationId: string,
  equal: Equal,
  { limit, offset }: Page,
): RawBuilder<string> {
  const wanted = equal.map(([column, value]) => sql`${sql.ref(column)} = ${value}`);
  return sql<string>`select id from (
      select id, ${sql.join(kindColumns.map((column) => sql.ref(column)))} from jobs
      where organization_id = ${organizationId} order by id desc limit ${walkedMax}
    ) as newest
    where ${sql.join(wanted, sql` and `)} order by id desc limit ${limit} offset ${offset}`;
}

/**
 * The ids of a page, of the newest jobs of each kind: what is rare, or was long ago, is found without
 * walking past everything else.
 */
function newestOfKinds(
  db: Handle,
  organizationId: string,
  equal: Equal,
  { limit, offset }: Page,
): RawBuilder<string> {
  const ofKind = sql.join(
    kindColumns.map((column) => sql`jobs.${sql.ref(column)} = kinds.${sql.ref(column)}`),
    sql` and `,
  );
  return sql<string>`select newest.id from (${kindsOf(db, organizationId, equal)}) as kinds
    cross join lateral (
      select jobs.id from jobs where jobs.organization_id = ${organizationId} and ${ofKind}
      order by jobs.id desc limit ${offset + limit}
    ) as newest
    order by newest.id desc limit ${limit} offset ${offset}`;
}

/** Jobs of all organizations that have not ended, by status and trigger, for the metrics. */
export async function countUnended(
  db: Handle,
): Promise<{ trigger_type: TriggerType; status: JobStatus; n: number }[]> {
  const rows = await db.kysely
    .selectFrom('job_counts')
    .select((eb) => ['trigger_type', 'status', eb.fn.sum<number>('count').as('n')])
    // Literals, for the index of these two.
    .where(sql<SqlBool>`status in ('queued', 'active')`)
    .groupBy(['trigger_type', 'status'])
    .execute();
  return rows.map((row) => ({ ...row, n: Number(row.n) }));
}

/** How many jobs of an organization wait and run. */
export async function countUnendedOf(
  db: Handle,
  organizationId: string,
): Promise<{ queued: number; active: number }> {
  const rows = await db.kysely
    .selectFrom('job_counts')
    .select((eb) => ['status', eb.fn.sum<number>('count').as('n')])
    .where('organization_id', '=', organizationId)
    // Literals, for the index of these two.
    .where(sql<SqlBool>`status in ('queued', 'active')`)
    .groupBy('status')
    .execute();
  const of = (status: JobStatus) => Number(rows.find((row) => row.status === status)?.n ?? 0);
  return { queued: of('queued'), active: of('active') };
}
