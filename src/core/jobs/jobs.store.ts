/**
 * The rows of jobs: inserted, found, locked, counted. Claims are in `admission.store.ts`,
 * their leases in `leases.store.ts`, their ends in `settle.store.ts`.
 */
import { type Insertable, type Selectable, sql } from 'kysely';
import { Counts } from '../../adapters/database/counts.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn } from '../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf, statement } from '../../adapters/database/statement.ts';
import type { JobsTable } from '../../adapters/database/tables.ts';

export type JobRow = Selectable<JobsTable>;

/** What the hint of a job is made of; each query that finds jobs for hints selects these. */
export const hintedColumns = ['id', 'trigger_type', 'organization_id'] as const;
export type HintedJob = Pick<JobRow, (typeof hintedColumns)[number]>;

/** The columns that a worker needs of a claimed job. */
export const claimedColumns = [
  ...hintedColumns,
  'api_key_id',
  'agent_id',
  'user_id',
  'conversation_id',
  'for_user',
  'priority',
  'skill_category',
  'skill_name',
  'skill_version',
  'attempt',
  'max_attempts',
  'run_at',
  'expires_at',
  'retry_of',
  'resumes',
  'batch_id',
  'job_key',
  'epoch',
  'deaths',
  'parent_job_id',
  'parent_step',
  'depth',
  'input',
  'agent_overrides',
  'instruction_values',
  'created_at',
  'started_at',
  'resumed_at',
  'active_ms',
  'attempts_before',
  'idle_claims',
  'gated',
  'held_by',
  'concurrency_key',
] as const;
export type ClaimedJob = Pick<JobRow, (typeof claimedColumns)[number]>;

/** What clients are shown of a job, beside its tokens. */
export type ShownJob = Omit<
  JobRow,
  | 'api_key_id'
  | 'for_user'
  | 'epoch'
  | 'deaths'
  | 'due_at'
  | 'active_ms'
  | 'cancel_requested_at'
  | 'parent_step'
  | 'depth'
  | ClaimColumn
>;

/** Columns that only claims read. */
type ClaimColumn =
  | 'claimed_by'
  | 'begun'
  | 'has_begun'
  | 'attempts_before'
  | 'idle_claims'
  | 'gated'
  | 'concurrency_key';

/** The user whose memories a job sees: one that a client named. */
export const memoryUserOf = ({ user_id, for_user }: Pick<JobRow, 'user_id' | 'for_user'>) =>
  for_user === 1 ? user_id : null;

/** The defaults of a new job: queued, without an outcome. */
type Defaults =
  | 'status'
  | 'attempt'
  | 'epoch'
  | 'deaths'
  | 'started_at'
  | 'finished_at'
  | 'cancel_requested_at'
  | 'output'
  | 'error'
  | 'progress'
  | 'resumed_at'
  | 'active_ms'
  | 'erased_at'
  | 'agent_version'
  | 'held_by'
  | 'replaced_by'
  | 'delivered_to'
  | ClaimColumn;

/** The order in which many jobs are locked, so that two transactions never deadlock. */
export const inIdOrder = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);

/** The identity of a claim. */
export const claimOf = ({ id, epoch }: { readonly id: string; readonly epoch: number }) =>
  `${id} ${epoch}`;

/** What only the jobs have that a run starts. */
type OfChild = 'parent_job_id' | 'parent_step' | 'depth';

/** What only the jobs have whose skill has limits. */
type OfGated = 'held_by' | 'gated' | 'concurrency_key';

/** A job about to be recorded. */
export type NewJob = Omit<JobRow, Defaults | OfChild | 'due_at'> &
  Partial<Pick<JobRow, OfChild | OfGated>>;

/** The claim of jobs as they are recorded: by which process, and until when. */
interface FirstClaim {
  readonly by: number;
  readonly leaseUntil: number;
}

/** Records jobs: `claimed` as under their first attempt, the others as queued. */
export async function insertJobs(
  tx: Transaction,
  jobs: readonly NewJob[],
  claimed: ReadonlySet<NewJob>,
  claim: FirstClaim,
): Promise<void> {
  const rowOf = (job: NewJob) => newRow(job, claimed.has(job), claim);
  if (!jobs.some(hasMore)) return tx.insert('jobs', jobs.map(rowOf));
  // All rows of an insert have the same columns.
  const byColumns = Map.groupBy(jobs, (job) => Number(hasParent(job)) + 2 * Number(isGated(job)));
  for (const same of byColumns.values()) await tx.insert('jobs', same.map(rowOf));
}

const hasParent = ({ parent_job_id }: NewJob) => parent_job_id !== undefined;
const isGated = ({ gated }: NewJob) => gated !== undefined;
const hasMore = (job: NewJob) => hasParent(job) || isGated(job);

function newRow(
  job: NewJob,
  isClaimed: boolean,
  { by, leaseUntil }: FirstClaim,
): Insertable<JobsTable> {
  return {
    ...job,
    status: isClaimed ? 'active' : 'queued',
    attempt: isClaimed ? 1 : 0,
    // A claim reads records from the second epoch on.
    epoch: isClaimed || job.resumes !== null ? 1 : 0,
    claimed_by: isClaimed ? by : 0,
    begun: isClaimed ? -1 : 0,
    due_at: isClaimed ? leaseUntil : job.run_at,
    started_at: isClaimed ? job.created_at : null,
  };
}

/** Marks an active job as to be stopped; undefined when it is not active. */
export const requestCancellation = firstRow<{ id: string; now: number }, Transaction>()((db, p) =>
  db
    .updateTable('jobs')
    .set({ cancel_requested_at: p('now') })
    .where('id', '=', p('id'))
    .where('status', '=', 'active')
    .returning('id'),
);

/** The next jobs of an API key that wait or run, in the order of their ids. */
export const findUnendedOfKey = allRows<{
  api_key_id: string;
  status: 'queued' | 'active' | 'waiting';
  after: string;
  limit: number;
}>()((db, p) =>
  db
    .selectFrom('jobs')
    .select('id')
    .where('status', '=', p('status'))
    // So that the query uses the index of unended jobs.
    .where('due_at', 'is not', null)
    .where('api_key_id', '=', p('api_key_id'))
    .where('id', '>', p('after'))
    .orderBy('id')
    .limit(p('limit')),
);

/** The active ones of the jobs whose cancellation was requested. */
export const findCancelling = allRows<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('jobs')
    .select('id')
    .where(idIn(dialect, listOf(p, 'ids')))
    .where('status', '=', sql.lit('active'))
    .where('cancel_requested_at', 'is not', null),
);

const setProgress = statement<{ id: string; epoch: number; progress: string }>()((db, p) =>
  db
    .updateTable('jobs')
    .set({ progress: p('progress') })
    .where('id', '=', p('id'))
    .where('epoch', '=', p('epoch'))
    .where('status', '=', 'active'),
);

/** Records the last progress of attempts under way. */
export function setJobProgress(
  tx: Transaction,
  rows: readonly { id: string; epoch: number; progress: string }[],
) {
  return tx.each(setProgress, rows.toSorted(inIdOrder));
}

const byId = statement<{ id: string; organization_id: string }>()((db, p) =>
  db
    .selectFrom('jobs')
    .selectAll()
    .where('id', '=', p('id'))
    .where('organization_id', '=', p('organization_id')),
);

export function findJob(
  db: Handle,
  organizationId: string,
  id: string,
): Promise<JobRow | undefined> {
  return db.first(byId, { id, organization_id: organizationId });
}

/** The first user for whom a run of the conversation was; undefined where all were for none. */
export const findUserOfConversation = firstRow<{ conversationId: string }, Transaction>()((db, p) =>
  db
    .selectFrom('messages')
    .innerJoin('jobs', 'jobs.id', 'messages.job_id')
    .select('jobs.user_id')
    .where('messages.conversation_id', '=', p('conversationId'))
    .where('messages.role', '=', sql.lit('user'))
    .where('jobs.for_user', '=', sql.lit(1))
    .orderBy('messages.id')
    .limit(1),
);

const byIdsLocked = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('jobs')
    .select('id')
    .where(idIn(dialect, listOf(p, 'ids')))
    .orderBy('id')
    .forUpdate(),
);

/** Locks the jobs: no other transaction changes them before this one ends. */
export async function lockJobs(tx: Transaction, ids: readonly string[]): Promise<void> {
  // SQLite has only one writer at a time.
  if (tx.dialect === 'postgres' && ids.length > 0) {
    await tx.all(byIdsLocked, { ids });
  }
}

export type JobCountChanges = Parameters<typeof jobCounts.change>[2];

export const jobCounts = new Counts('job_counts', [
  'organization_id',
  'agent_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'trigger_type',
]);
