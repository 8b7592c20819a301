/** Every query on approvals. */
import { type Selectable, type SqlBool, sql } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { isIn, listValue } from '../../adapters/database/ids-in.ts';
import { bytesOf, cutPage, type PageAsked } from '../../adapters/database/page-bytes.ts';
import { firstRow, listOf, statement } from '../../adapters/database/statement.ts';
import type { ApprovalStatus, ApprovalsTable } from '../../adapters/database/tables.ts';

export type ApprovalRow = Selectable<ApprovalsTable>;

/** The filters of a list of approvals. */
export interface ApprovalFilters {
  readonly status?: ApprovalStatus | undefined;
  readonly job_ids?: readonly string[] | undefined;
  readonly agent_id?: string | undefined;
}

/** The columns that end a pending approval. */
export type ApprovalEnd = Pick<
  ApprovalRow,
  'decided_at' | 'decided_by' | 'decided_by_kind' | 'decided_by_key' | 'reason' | 'answer'
> & { readonly status: Exclude<ApprovalStatus, 'pending'> };

export function insertApproval(tx: Transaction, row: ApprovalRow): Promise<void> {
  return tx.insert('approvals', [row]);
}

export const findApproval = firstRow<{ organization_id: string; id: string }>()((db, p) =>
  db
    .selectFrom('approvals')
    .selectAll()
    .where('organization_id', '=', p('organization_id'))
    .where('id', '=', p('id')),
);

/** The API key of a decision: the one that decided, or the one with which the console's session acts. */
export const deciderKey = (row: Pick<ApprovalRow, 'decided_by' | 'decided_by_key'>) =>
  row.decided_by_key ?? row.decided_by;

/**
 * The names of the API keys of decisions, by their ids: the client's name, or `Administrator` for the key with which
 * administrators act in the console.
 */
export async function namesOfKeys(
  db: Handle,
  decisions: readonly Pick<ApprovalRow, 'decided_by' | 'decided_by_key'>[],
): Promise<ReadonlyMap<string, string>> {
  const ids = new Set(decisions.flatMap((one) => deciderKey(one) ?? []));
  if (ids.size === 0) return new Map();
  const rows = await db.kysely
    .selectFrom('api_keys')
    .select(['id', 'client_name', 'console'])
    .where('id', 'in', [...ids])
    .execute();
  return new Map(
    rows.map((row) => [row.id, row.console === 1 ? 'Administrator' : row.client_name]),
  );
}

/** The users of jobs, by the ids of the jobs. */
export async function usersOfJobs(
  db: Handle,
  jobs: readonly Pick<ApprovalRow, 'job_id'>[],
): Promise<ReadonlyMap<string, string>> {
  const ids = new Set(jobs.map(({ job_id }) => job_id));
  if (ids.size === 0) return new Map();
  const found = db.kysely
    .selectFrom('jobs')
    .select(['id', 'user_id'])
    .where('id', 'in', [...ids]);
  return new Map((await found.execute()).map(({ id, user_id }) => [id, user_id]));
}

/**
 * A page of approvals, newest first, and the total. `next` is the offset of the next page when this one was
 * cut because of its size in bytes.
 */
export async function listApprovals(
  db: Handle,
  organizationId: string,
  { status, job_ids, agent_id }: ApprovalFilters,
  page: PageAsked,
) {
  const equal = (column: 'organization_id' | 'status' | 'agent_id', value: string) =>
    job_ids === undefined
      ? sql<SqlBool>`${sql.ref(column)} = ${value}`
      : // A family has few approvals, so the query uses the index of job_id alone.
        sql<SqlBool>`${sql.ref(column)} || '' = ${value}`;
  let query = db.kysely.selectFrom('approvals').where(equal('organization_id', organizationId));
  if (job_ids !== undefined) {
    query = query.where(isIn(db.dialect, sql.ref('job_id'), listValue(job_ids)));
  }
  if (status !== undefined) query = query.where(equal('status', status));
  if (agent_id !== undefined) query = query.where(equal('agent_id', agent_id));
  const total = await countOf(query);
  const sizes = await query
    .select(['id', bytesOf('title', 'details', 'reason', 'fields', 'answer').as('bytes')])
    .orderBy('id', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const { rows, next } = cutPage(sizes, page);
  if (rows.length === 0) return { rows: [], total, next };
  const ids = rows.map(({ id }) => id);
  const found = db.kysely.selectFrom('approvals').selectAll().where('id', 'in', ids);
  return { rows: await found.orderBy('id', 'desc').execute(), total, next };
}

const end = statement<ApprovalEnd & { job_id: string; n: number }>()((db, p) =>
  db
    .updateTable('approvals')
    .set({
      status: p('status'),
      decided_at: p('decided_at'),
      decided_by: p('decided_by'),
      decided_by_kind: p('decided_by_kind'),
      decided_by_key: p('decided_by_key'),
      reason: p('reason'),
      answer: p('answer'),
    })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n'))
    .where('status', '=', sql.lit('pending'))
    .returningAll(),
);

/** Ends the pending approval of a step and returns it; undefined when there is none. */
export function endApproval(
  tx: Transaction,
  { job_id, n }: { readonly job_id: string; readonly n: number },
  ending: ApprovalEnd,
): Promise<ApprovalRow | undefined> {
  return tx.first(end, { ...ending, job_id, n });
}

const cancel = statement<{ job_ids: readonly string[]; now: number }>()((db, p, dialect) =>
  db
    .updateTable('approvals')
    .set({ status: 'cancelled', decided_at: p('now') })
    .where(isIn(dialect, sql.ref('job_id'), listOf(p, 'job_ids')))
    .where('status', '=', sql.lit('pending'))
    .returningAll(),
);

/** Cancels the pending approvals of jobs and returns them, in the order of their ids. */
export async function cancelApprovals(
  tx: Transaction,
  jobIds: readonly string[],
  now: number,
): Promise<ApprovalRow[]> {
  const rows = await tx.all(cancel, { job_ids: jobIds, now });
  return rows.sort((a, b) => (a.id < b.id ? -1 : 1));
}

const remove = statement<{ job_ids: readonly string[] }>()((db, p, dialect) =>
  db.deleteFrom('approvals').where(isIn(dialect, sql.ref('job_id'), listOf(p, 'job_ids'))),
);

/** Deletes the approvals of jobs. */
export function deleteApprovals(tx: Transaction, jobIds: readonly string[]): Promise<void> {
  return tx.each(remove, [{ job_ids: jobIds }]);
}
