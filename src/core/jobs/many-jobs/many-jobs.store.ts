/**
 * The queries that find the jobs of one organization to be cancelled, or to be run again, in the order of their ids. Each
 * reads some rows and returns those that the command is for, however few these are: a query that reads all rows until it
 * has found enough would hold up other work.
 */
import { type ExpressionBuilder, type Selectable, type SqlBool, sql } from 'kysely';
import type { Handle } from '../../../adapters/database/database.ts';
import { isIn, listValue } from '../../../adapters/database/ids-in.ts';
import type { JobsTable, Tables } from '../../../adapters/database/tables.ts';
import { idFloor } from '../../../kernel/ids.ts';
import type { JobFilters } from '../job-lists.store.ts';

/** Which jobs a command is for. */
export interface JobSelection {
  /** Unended ones; or failed or cancelled ones that were not run again, where the filters name one of the two. */
  readonly kind: 'open' | 'retryable';
  readonly organizationId: string;
  readonly filters: JobFilters;
  /** They were accepted by then. */
  readonly acceptedBy: number;
}

/** What one query has found. */
export interface JobsFound {
  readonly ids: readonly string[];
  /** The job behind which the next query goes on; null where this one has read the last. */
  readonly next: string | null;
}

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

/** Ids begin with the time of their jobs, but for so much where a clock was set back. */
const idsApartMs = 60_000;

/** The jobs that a command is for among the next `rows` ones behind the job `after`. */
export async function findManyJobs(
  { kysely }: Handle,
  selection: JobSelection,
  after: string,
  rows: number,
): Promise<JobsFound> {
  const { created_after } = selection.filters;
  const from = created_after === undefined ? '' : idFloor(created_after - idsApartMs);
  const read = await kysely
    .selectFrom('jobs')
    .select((eb) => [
      'id',
      eb.case().when(isMeant(eb, selection)).then(1).else(0).end().as('is_meant'),
    ])
    .where((eb) => mayBeMeant(eb, selection))
    .where('id', '>', after > from ? after : from)
    .orderBy('id')
    .limit(rows)
    .execute();
  const ids = read.filter(({ is_meant }) => Number(is_meant) === 1).map(({ id }) => id);
  return { ids, next: read.length < rows ? null : (read.at(-1)?.id ?? null) };
}

/** The jobs of these ids, in their order. */
export function jobsOfIds(db: Handle, ids: readonly string[]): Promise<Selectable<JobsTable>[]> {
  return db.kysely
    .selectFrom('jobs')
    .selectAll()
    .where(isIn(db.dialect, sql.ref('id'), listValue(ids)))
    .orderBy('id')
    .execute();
}

type Columns = ExpressionBuilder<Tables, 'jobs'>;

/** What one index finds in the order of ids: the best one by the filters, for the planner knows little of their values. */
function mayBeMeant(eb: Columns, { kind, organizationId, filters }: JobSelection) {
  const { batch_id, parent_job_id, user_id, status } = filters;
  if (batch_id !== undefined) return eb('batch_id', '=', batch_id);
  if (parent_job_id !== undefined && parent_job_id !== null)
    return eb('parent_job_id', '=', parent_job_id);
  const ofOrganization = eb('organization_id', '=', organizationId);
  if (user_id !== undefined) {
    // Literals, so that the indexes of users are used.
    const isForUser =
      kind === 'open'
        ? sql<SqlBool>`for_user + 0 = 1 and due_at is not null`
        : sql<SqlBool>`for_user = 1`;
    return eb.and([ofOrganization, eb('user_id', '=', user_id), isForUser]);
  }
  return kind === 'open'
    ? eb.and([ofOrganization, eb('due_at', 'is not', null)])
    : eb.and([
        ofOrganization,
        eb('status', '=', status ?? 'failed'),
        sql<SqlBool>`status in ('failed', 'cancelled')`,
      ]);
}

function isMeant(eb: Columns, { kind, organizationId, filters, acceptedBy }: JobSelection) {
  const terms = [eb('organization_id', '=', organizationId), eb('created_at', '<=', acceptedBy)];
  for (const column of equalColumns) {
    const value = filters[column];
    if (value !== undefined) terms.push(eb(column, '=', value as never));
  }
  const { user_id, created_after, created_before } = filters;
  if (user_id !== undefined) terms.push(eb('user_id', '=', user_id), eb('for_user', '=', 1));
  if (created_after !== undefined) terms.push(eb('created_at', '>', created_after));
  if (created_before !== undefined) terms.push(eb('created_at', '<', created_before));
  if (kind === 'open') return eb.and([...terms, eb('due_at', 'is not', null)]);
  return eb.and([
    ...terms,
    sql<SqlBool>`status in ('failed', 'cancelled')`,
    eb('erased_at', 'is', null),
    // Another job of its key runs, or has run, instead.
    eb('replaced_by', 'is', null),
    sql<SqlBool>`not exists (select 1 from jobs as retry
      where retry.retry_of = jobs.id and retry.retry_of is not null)`,
  ]);
}
