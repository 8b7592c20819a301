/** Lists of jobs and how many there are; counts are read off the rows kept for them, never counted. */
import { type Selectable, sql } from 'kysely';
import type { Handle } from '../database/database.ts';
import type { JobStatus, JobsTable, TriggerType } from '../database/tables.ts';

/** What a list of jobs may be narrowed by. */
export interface JobFilters {
  status?: JobStatus | undefined;
  agent_id?: string | undefined;
  skill_category?: string | undefined;
  skill_name?: string | undefined;
  skill_version?: string | undefined;
  trigger_type?: string | undefined;
  conversation_id?: string | undefined;
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

/** A page of jobs, newest first, and how many there are in all. */
export async function listJobs(
  db: Handle,
  organizationId: string,
  { conversation_id, ...counted }: JobFilters,
  page: { limit: number; offset: number },
): Promise<{ jobs: ListedJob[]; total: number }> {
  const equal = Object.entries(counted).filter(([, value]) => value !== undefined) as [
    Exclude<keyof JobFilters, 'conversation_id'>,
    never,
  ][];
  let query = db.kysely.selectFrom('jobs').where('organization_id', '=', organizationId);
  for (const [column, value] of equal) query = query.where(column, '=', value);
  if (counted.status === 'failed' || counted.status === 'cancelled') {
    // Says what the status implies already, so that the index on these two is used.
    query = query.where(sql<boolean>`status in ('failed', 'cancelled')`);
  }
  if (counted.status === 'active') {
    // Few at any moment, and the index of due jobs knows them.
    query = query.where('id', 'in', (eb) =>
      eb
        .selectFrom('jobs')
        .select('id')
        .where('status', '=', 'active')
        .where('due_at', 'is not', null),
    );
  }
  if (conversation_id !== undefined) {
    query = query.where('id', 'in', (eb) =>
      eb.selectFrom('messages').select('job_id').where('conversation_id', '=', conversation_id),
    );
  }
  const total =
    conversation_id === undefined
      ? await countJobs(db, organizationId, equal)
      : await countRows(query);
  const rows = Math.min(page.limit, total - page.offset);
  if (rows <= 0) return { jobs: [], total };
  const jobs = await query
    .select([...listedColumns])
    .orderBy('id', 'desc')
    .limit(rows)
    .offset(page.offset)
    .execute();
  return { jobs, total };
}

type JobsQuery = ReturnType<ReturnType<typeof jobsQuery>['where']>;
function jobsQuery(db: Handle) {
  return db.kysely.selectFrom('jobs');
}

async function countRows(query: JobsQuery): Promise<number> {
  const row = await query.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst();
  return Number(row?.n ?? 0);
}

async function countJobs(
  db: Handle,
  organizationId: string,
  equal: readonly [Exclude<keyof JobFilters, 'conversation_id'>, never][],
): Promise<number> {
  let query = db.kysely.selectFrom('job_counts').where('organization_id', '=', organizationId);
  for (const [column, value] of equal) query = query.where(column, '=', value);
  const row = await query
    .select((eb) => eb.fn.sum<number | null>('count').as('n'))
    .executeTakeFirst();
  return Number(row?.n ?? 0);
}

/** Jobs of all organizations by status and trigger, for the metrics. */
export async function countByStatus(
  db: Handle,
): Promise<{ trigger_type: TriggerType; status: JobStatus; n: number }[]> {
  const rows = await db.kysely
    .selectFrom('job_counts')
    .select((eb) => ['trigger_type', 'status', eb.fn.sum<number>('count').as('n')])
    .groupBy(['trigger_type', 'status'])
    .execute();
  return rows.map((row) => ({ ...row, n: Number(row.n) }));
}
