/** The queries that find the jobs of one organization to be cancelled, or to be run again, in the order of their ids. */
import { type Selectable, type SelectQueryBuilder, type SqlBool, sql } from 'kysely';
import type { Handle } from '../../adapters/database/database.ts';
import type { JobsTable, Tables } from '../../adapters/database/tables.ts';
import type { JobFilters } from './job-lists.store.ts';

/** Which jobs a command is for; those of one status where the filters name it. */
export interface ManyAsked {
  readonly organizationId: string;
  readonly filters: JobFilters;
  /** The job after which they lie, by id. */
  readonly after: string;
  /** They were accepted by then. */
  readonly acceptedBy: number;
}

type Query = SelectQueryBuilder<Tables, 'jobs', object>;

const equalColumns = [
  'status',
  'agent_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'trigger_type',
  'conversation_id',
  'parent_job_id',
  'batch_id',
  'api_key_id',
] as const;

/** Unended jobs, by the index of these. */
export function openOnes(db: Handle, asked: ManyAsked): Query {
  return narrowed(db, asked).where('due_at', 'is not', null);
}

/** Failed or cancelled jobs that were not run again since, by the index of these statuses; the filters name one of them. */
export function retryableOnes(db: Handle, asked: ManyAsked): Query {
  return narrowed(db, asked)
    .where(sql<SqlBool>`status in ('failed', 'cancelled')`)
    .where('erased_at', 'is', null)
    .where(
      sql<SqlBool>`not exists (select 1 from jobs as retry
        where retry.retry_of = jobs.id and retry.retry_of is not null)`,
    );
}

function narrowed(
  { kysely }: Handle,
  { organizationId, filters, after, acceptedBy }: ManyAsked,
): Query {
  let query = kysely
    .selectFrom('jobs')
    .where('organization_id', '=', organizationId)
    .where('id', '>', after)
    .where('created_at', '<=', acceptedBy);
  for (const column of equalColumns) {
    const value = filters[column];
    if (value !== undefined) query = query.where(column, '=', value as never);
  }
  const { user_id, created_after, created_before } = filters;
  if (user_id !== undefined) {
    // A literal, so that the index of users is used.
    query = query.where('user_id', '=', user_id).where('for_user', '=', sql.lit(1));
  }
  if (created_after !== undefined) query = query.where('created_at', '>', created_after);
  if (created_before !== undefined) query = query.where('created_at', '<', created_before);
  return query;
}

/** The ids of the next of them. */
export async function nextIds(query: Query, limit: number): Promise<string[]> {
  const rows = await query.select('id').orderBy('id').limit(limit).execute();
  return rows.map(({ id }) => id);
}

/** The next of them. */
export function nextRows(query: Query, limit: number): Promise<Selectable<JobsTable>[]> {
  return query.selectAll('jobs').orderBy('id').limit(limit).execute();
}

/** How many of them there are, counted to `max`. */
export async function countOf({ kysely }: Handle, query: Query, max: number): Promise<number> {
  const row = await kysely
    .selectFrom(query.select('id').limit(max).as('counted'))
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .executeTakeFirst();
  return Number(row?.n ?? 0);
}
