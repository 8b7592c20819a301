/**
 * Lists of jobs, with totals. Totals come from the rows of `job_counts`. Those rows cover neither
 * conversations nor windows of time, so the jobs of these are counted, those of a window up to a bound. One
 * file, because the total decides how its page is found.
 */
import {
  type RawBuilder,
  type Selectable,
  type SelectExpression,
  type SelectQueryBuilder,
  type SqlBool,
  sql,
} from 'kysely';
import type { Handle } from '../../adapters/database/database.ts';
import {
  hasIdWithin,
  isWithin,
  type Moments,
  type Window,
  windowBetween,
} from '../../adapters/database/job-window.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import type { JobStatus, JobsTable, Tables } from '../../adapters/database/tables.ts';
import { gatesOfConversation } from './in-conversation/conversation-jobs.store.ts';
import {
  anyOfKinds,
  countJobs,
  type Equal,
  type KindColumn,
  newestMet,
  newestOfKinds,
  walkedMax,
} from './job-kinds.store.ts';

/** What a list of jobs may be narrowed by. */
export type JobFilters = Moments & {
  [Column in
    | KindColumn
    | 'conversation_id'
    | 'api_key_id'
    | 'parent_job_id'
    | 'user_id'
    | 'batch_id']?: Selectable<JobsTable>[Column] | undefined;
};

/** A list that is bounded in time counts no further than this, and ends there. */
export const boundedTotalMax = 10_000;

const listedColumns = [
  'id',
  'status',
  'conversation_id',
  'agent_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'parent_job_id',
  'created_at',
] as const;
export type ListedJobRow = Pick<Selectable<JobsTable>, (typeof listedColumns)[number]>;

const timedColumns = [
  ...listedColumns,
  'trigger_type',
  'user_id',
  'attempt',
  'max_attempts',
  'run_at',
  'expires_at',
  'started_at',
  'resumed_at',
  'finished_at',
  'error',
] as const;
/** Of the fields that a job has instead of its agent's, which may be long, only whether there are any. */
const isTrial = sql<boolean | number>`agent_overrides is not null`.as('is_trial');
/** With how it went. */
export type TimedJob = Pick<Selectable<JobsTable>, (typeof timedColumns)[number]> & {
  readonly is_trial: boolean | number;
};

/** The ids of the jobs of a list, newest first. */
type IdQuery = SelectQueryBuilder<Tables, 'jobs', { id: string }>;

/** A page of jobs, newest first, and how many there are in all. */
export function listJobs(db: Handle, organizationId: string, filters: JobFilters, page: PageAsked) {
  return list(db, organizationId, filters, page, listedColumns);
}

/** Like `listJobs`, with how each of them went. */
export function listTimedJobs(
  db: Handle,
  organizationId: string,
  filters: JobFilters,
  page: PageAsked,
) {
  return list(db, organizationId, filters, page, [...timedColumns, isTrial]);
}

/** The request for a list. */
interface ListRequest {
  readonly db: Handle;
  readonly organizationId: string;
  readonly equal: Equal;
  /** Null without a filter by time. */
  readonly window: Window | null;
  /** Whether it is looked up by ids of which no count is kept. */
  readonly isLookedUp: boolean;
}

/** How many jobs a list has, and how a page of them is found. */
interface Counted {
  readonly total: number;
  /** At most how many kinds of jobs it has; null when no count is kept of it. */
  readonly kinds: number | null;
  /** Whether jobs of a kind are better looked up than met among what else lies in the window. */
  readonly isWide: boolean;
}

async function list<Column extends SelectExpression<Tables, 'jobs'>>(
  db: Handle,
  organizationId: string,
  filters: JobFilters,
  page: PageAsked,
  columns: readonly Column[],
) {
  const { conversation_id, api_key_id, parent_job_id, user_id, batch_id, ...others } = filters;
  const { created_after, created_before, ...counts } = others;
  const request: ListRequest = {
    db,
    organizationId,
    equal: Object.entries(counts).filter(([, value]) => value !== undefined) as Equal[number][],
    window: await windowBetween(db, organizationId, { created_after, created_before }),
    isLookedUp: [conversation_id, api_key_id, parent_job_id, user_id, batch_id].some(
      (id) => id !== undefined,
    ),
  };
  const query = narrowed(request, filters);
  const counted = await count(request, query.select('id').orderBy('id', 'desc'));
  const { total } = counted;
  const limit = Math.min(page.limit, total - page.offset);
  if (limit <= 0) return { jobs: [], total };
  const within = { limit, offset: page.offset };
  const newest = query.orderBy('id', 'desc').limit(limit).offset(page.offset);
  if (db.dialect === 'sqlite' || request.isLookedUp) {
    return { jobs: await newest.select([...columns]).execute(), total };
  }
  const jobs =
    request.equal.length === 0
      ? // What the page skips is skipped in the index: its rows are not read.
        await readJobs(request, columns, sql`${newest.select('id')}`)
      : await readPage(request, counted, within, columns, newest);
  return { jobs, total };
}

function readJobs<Column extends SelectExpression<Tables, 'jobs'>>(
  { db, organizationId }: ListRequest,
  columns: readonly Column[],
  ids: RawBuilder<string>,
) {
  return db.kysely
    .selectFrom('jobs')
    .select([...columns])
    .where('organization_id', '=', organizationId)
    .where(isAmong(db, ids))
    .orderBy('id', 'desc')
    .execute();
}

/** The jobs that the filters allow. */
function narrowed(
  { db, organizationId, equal, window, isLookedUp }: ListRequest,
  filters: JobFilters,
) {
  const { status, conversation_id, api_key_id, parent_job_id, user_id, batch_id } = filters;
  let query = db.kysely.selectFrom('jobs').where('organization_id', '=', organizationId);
  for (const [column, value] of equal) query = query.where(column, '=', value);
  if (status === 'failed' || status === 'cancelled') {
    // Says what the status implies already, so that the index on these two is used.
    query = query.where(sql<boolean>`status in ('failed', 'cancelled')`);
  }
  if (status === 'waiting') {
    // The same again as a literal, so that the index of these is used.
    query = query.where(sql<boolean>`status = 'waiting'`);
  }
  if (status === 'active') {
    // Few at any moment, and the index of due jobs knows them.
    const active = sql<string>`select id from jobs where status = 'active' and due_at is not null`;
    query = query.where(isAmong(db, active));
  }
  if (conversation_id !== undefined) {
    const spoken = sql<string>`select job_id from messages where conversation_id = ${conversation_id}
      union select id from jobs where held_by in (${sql.join(gatesOfConversation(conversation_id))})
      union select id from jobs where delivered_to in
        (select job_id from messages where conversation_id = ${conversation_id})`;
    query = query.where(isAmong(db, spoken));
  }
  if (parent_job_id !== undefined) {
    const children = sql<string>`select id from jobs where parent_job_id = ${parent_job_id}`;
    query = query.where(isAmong(db, children));
  }
  if (batch_id !== undefined && batch_id !== null) {
    query = query.where(isAmong(db, sql`select id from jobs where batch_id = ${batch_id}`));
  }
  if (user_id !== undefined) {
    query = query.where(isAmong(db, ofUser(organizationId, user_id, status)));
  }
  if (api_key_id !== undefined) {
    query = query.where(isAmong(db, ofKey(organizationId, api_key_id, status)));
  }
  if (window === null) return query;
  const isFound = isLookedUp || db.dialect === 'postgres';
  return query.where(isFound ? isWithin(window) : isMetSoon(organizationId, equal, window));
}

async function count(request: ListRequest, ids: IdQuery): Promise<Counted> {
  const { db, organizationId, equal, window, isLookedUp } = request;
  // No count is kept for a window alone.
  const isUncounted = isLookedUp || (window !== null && equal.length === 0);
  const kept = isUncounted ? null : await countJobs(db, organizationId, equal);
  const kinds = kept?.kinds ?? null;
  const total = kept?.total ?? Number.POSITIVE_INFINITY;
  if (window === null) {
    return { total: isLookedUp ? await countIds(db, sql`${ids}`) : total, kinds, isWide: true };
  }
  if (total <= 0) return { total, kinds, isWide: false };
  const limit = Math.min(total, boundedTotalMax);
  if (db.dialect === 'sqlite' || kinds === null) {
    return { total: await countIds(db, sql`${ids.limit(limit)}`), kinds, isWide: false };
  }
  return { ...(await countInWindow({ ...request, window }, kinds, limit)), kinds };
}

/** Counts the jobs of a window by those of each kind, or by meeting them, up to `limit`. */
async function countInWindow(
  { db, organizationId, equal, window }: ListRequest & { readonly window: Window },
  kinds: number,
  limit: number,
) {
  const met = newestMet(organizationId, equal, { limit, offset: 0 }, window, 2 * walkedMax);
  const areFew = kinds <= kindsMax;
  let total = areFew ? 0 : await countIds(db, met);
  // When the limit is reached, nothing more has to be counted: there are many such jobs.
  const isFull = total === limit;
  const isWide = isFull || (await hasMany(db, organizationId, window));
  if (isWide && !isFull) {
    total = await countIds(db, anyOfKinds(db, organizationId, equal, limit, window));
  } else if (areFew) {
    total = await countIds(db, met);
  }
  return { total, isWide };
}

/** The jobs of a page in PostgreSQL: met among the newest, looked up by kind, or all walked past. */
async function readPage<Column extends SelectExpression<Tables, 'jobs'>>(
  request: ListRequest,
  { total, kinds, isWide }: Counted,
  within: PageAsked,
  columns: readonly Column[],
  newest: SelectQueryBuilder<Tables, 'jobs', object>,
) {
  const { db, organizationId, equal, window } = request;
  const byKind = () =>
    readJobs(request, columns, newestOfKinds(db, organizationId, equal, within, window));
  const met = () => readJobs(request, columns, newestMet(organizationId, equal, within, window));
  if (kinds === null || !isWide) return met();
  const end = within.offset + within.limit;
  if (kinds <= kindsMax && Math.min(total, kinds * end) <= readMax) return byKind();
  if (end > walkedMax) return newest.select([...columns]).execute();
  // Frequent jobs are mostly among the newest. Where these do not fill the page, the jobs are looked up by kind.
  const soon = await met();
  return soon.length === within.limit ? soon : byKind();
}

/**
 * The ids of an API key's jobs. There is no index of keys. All that wait or run are found, because those
 * are few and have indexes; of the others, those among the organization's newest jobs.
 */
function ofKey(
  organizationId: string,
  apiKeyId: string,
  status: JobStatus | undefined,
): RawBuilder<string> {
  const unended = unendedOf(organizationId, status);
  if (unended !== null) return sql`${unended} and api_key_id = ${apiKeyId}`;
  return sql<string>`select id from (
      select id, api_key_id from jobs where organization_id = ${organizationId}
      order by id desc limit ${sql.lit(walkedMaxOfKey)}
    ) as newest where api_key_id = ${apiKeyId}`;
}

/** The ids of a user's jobs: all that wait or run, and the newest of the others. */
function ofUser(
  organizationId: string,
  userId: string,
  status: JobStatus | undefined,
): RawBuilder<string> {
  if (status !== undefined && isUnended(status)) {
    // The terms of the index of these jobs, and the status so that no other index has it.
    return sql<string>`select id from jobs where organization_id = ${organizationId} and user_id = ${userId}
      and '' || status = ${status} and for_user + 0 = 1 and due_at is not null`;
  }
  // A literal, so that the index of users is used.
  const isForUser = sql`user_id = ${userId} and for_user = ${sql.lit(1)}`;
  return sql<string>`select id from (
      select id from jobs where organization_id = ${organizationId} and ${isForUser}
      order by id desc limit ${sql.lit(walkedMaxOfUser)}
    ) as newest`;
}

/** The ids of the jobs of a status that waits or runs, by the terms of their indexes; null for another status. */
function unendedOf(
  organizationId: string,
  status: JobStatus | undefined,
): RawBuilder<string> | null {
  if (status === undefined || !isUnended(status)) return null;
  // The terms of the indexes of queued jobs, and of jobs that are due.
  const isOfStatus =
    status === 'queued'
      ? sql`status || '' = 'queued'`
      : sql`status = ${sql.lit(status)} and due_at is not null`;
  return sql<string>`select id from jobs
    where ${isOfStatus} and organization_id = ${organizationId}`;
}

const isUnended = (status: JobStatus) =>
  status === 'queued' || status === 'active' || status === 'waiting';

/** That a job is one of those of a query. PostgreSQL would rather join, and may then walk through all jobs. */
function isAmong({ dialect }: Handle, ids: RawBuilder<string>): RawBuilder<SqlBool> {
  return dialect === 'sqlite'
    ? sql<SqlBool>`id in (${ids})`
    : sql<SqlBool>`id = any (array(${ids}))`;
}

async function countIds(db: Handle, ids: RawBuilder<string>): Promise<number> {
  const counted = sql<{ n: number }>`select count(*) as n from (${ids}) as counted`;
  const { rows } = await counted.execute(db.kysely);
  return Number(rows[0]?.n ?? 0);
}

/** Kinds whose newest jobs are looked up for a page at once, and ids that are read for it. */
const kindsMax = 1_000;
const readMax = 50_000;
/** Jobs of a window that SQLite walks past: it cannot look up those of a kind. */
export const walkedMaxOfSqlite = 20_000;

/** Jobs of an organization among which those of a key are looked for. */
export const walkedMaxOfKey = 10_000;
/** Jobs of a user among which a list of the user's jobs searches. */
export const walkedMaxOfUser = 10_000;

/** Whether a window holds more jobs than a query should walk past. */
async function hasMany(db: Handle, organizationId: string, window: Window): Promise<boolean> {
  const jobs = db.kysely.selectFrom('jobs').where('organization_id', '=', organizationId);
  const newest = jobs.where(hasIdWithin(window)).orderBy('id', 'desc').select('id');
  return (await newest.limit(1).offset(walkedMax).executeTakeFirst()) !== undefined;
}

/**
 * The condition that a job lies in the window. Where SQLite has no index for a filter, which may leave out most
 * jobs, the job must also be among the newest of the window, so that the walk has a bound.
 */
function isMetSoon(organizationId: string, equal: Equal, window: Window): RawBuilder<SqlBool> {
  const status = equal.find(([column]) => column === 'status')?.[1] as JobStatus | undefined;
  const isIndexed = status === 'failed' || status === 'cancelled';
  // Whatever is active is few.
  if (equal.length === (isIndexed ? 1 : 0) || status === 'active') return isWithin(window);
  const indexed = isIndexed
    ? sql`and jobs.status = ${status} and jobs.status in ('failed', 'cancelled')`
    : sql``;
  const last = sql<string>`select jobs.id from jobs
    where jobs.organization_id = ${organizationId} and ${hasIdWithin(window)} ${indexed}
    order by jobs.id desc limit 1 offset ${walkedMaxOfSqlite - 1}`;
  // One bound from below: of two, SQLite would walk to either.
  return isWithin({ ...window, from: sql<string>`coalesce((${last}), ${window.from})` });
}
