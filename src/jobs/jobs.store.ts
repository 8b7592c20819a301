/**
 * The rows of jobs: inserted, claimed, leased, settled, cancelled. A settlement is guarded by the job's
 * epoch, so a worker that has lost its lease changes nothing.
 */
import { type Selectable, type SqlBool, sql } from 'kysely';
import { createCounts } from '../database/counts.ts';
import type { Dialect, Handle, Transaction } from '../database/database.ts';
import { anyOf, idIn, idInLocked, idsParam } from '../database/ids-in.ts';
import { type Lists, listsOf, rowsIn, type Types } from '../database/rows-in.ts';
import { statement } from '../database/statement.ts';
import type { JobStatus, JobsTable } from '../database/tables.ts';
import { setBackMs } from '../kernel/set-back.ts';

export type JobRow = Selectable<JobsTable>;

/** The columns that a worker needs of a claimed job. */
const claimedColumns = [
  'id',
  'organization_id',
  'api_key_id',
  'agent_id',
  'conversation_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'trigger_type',
  'attempt',
  'max_attempts',
  'epoch',
  'deaths',
  'input',
  'created_at',
  'started_at',
] as const;
export type ClaimedJob = Pick<JobRow, (typeof claimedColumns)[number]>;

/** Where a run goes on: after the last thing that was said. Null where no other process can have said it. */
interface LastSaid {
  readonly last_message_id: string | null;
}

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
  | 'progress';

/** The order in which many jobs are locked, so that two transactions never deadlock. */
const inIdOrder = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);

/** A job about to be recorded. */
export type NewJob = Omit<JobRow, Defaults | 'due_at'>;

/** Records jobs: `claimed` as under their first attempt, the others as queued. */
export async function insertJobs(
  tx: Transaction,
  jobs: readonly NewJob[],
  claimed: ReadonlySet<NewJob>,
  leaseUntil: number,
): Promise<void> {
  await tx.insert(
    'jobs',
    jobs.map((job) => {
      const isClaimed = claimed.has(job);
      return {
        id: job.id,
        organization_id: job.organization_id,
        api_key_id: job.api_key_id,
        agent_id: job.agent_id,
        conversation_id: job.conversation_id,
        skill_category: job.skill_category,
        skill_name: job.skill_name,
        skill_version: job.skill_version,
        trigger_type: job.trigger_type,
        user_id: job.user_id,
        status: isClaimed ? 'active' : 'queued',
        attempt: isClaimed ? 1 : 0,
        max_attempts: job.max_attempts,
        epoch: isClaimed ? 1 : 0,
        run_at: job.run_at,
        due_at: isClaimed ? leaseUntil : job.run_at,
        started_at: isClaimed ? job.created_at : null,
        retry_of: job.retry_of,
        input: job.input,
        created_at: job.created_at,
      };
    }),
  );
}

/** The clocks of processes differ, but a later message must have a later id. */
const lastMessage = (dialect: Dialect) =>
  dialect === 'sqlite'
    ? sql<string | null>`null`
    : sql<string | null>`(select id from messages where conversation_id = jobs.conversation_id
        order by id desc limit 1)`;

const claim = statement<{
  ids: string;
  now: number;
  due_by: number;
  lease_until: number;
}>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set((eb) => ({
      status: 'active',
      attempt: eb('attempt', '+', 1),
      epoch: eb('epoch', '+', 1),
      started_at:
        dialect === 'sqlite'
          ? sql<number>`max(${p('now')}, run_at)`
          : sql<number>`greatest(${p('now')}::bigint, run_at)`,
      due_at: p('lease_until'),
      error: null,
      progress: null,
    }))
    .where(
      idInLocked(
        dialect,
        p('ids'),
        'jobs',
        sql<SqlBool>`status = 'queued' and run_at <= ${p('due_by')}`,
        true,
      ),
    )
    .returning([...claimedColumns])
    .returning(lastMessage(dialect).as('last_message_id')),
);

/**
 * Claims those of `ids` that are queued, due by `dueBy` and not locked; the others are not among the
 * rows.
 */
export function claimJobs(
  tx: Transaction,
  ids: readonly string[],
  now: number,
  leaseUntil: number,
  dueBy = now,
): Promise<(ClaimedJob & LastSaid)[]> {
  return tx.all(claim, { ids: idsParam(ids), now, due_by: dueBy, lease_until: leaseUntil });
}

/** The identity of a claim. */
const claimOf = ({ id, epoch }: { readonly id: string; readonly epoch: number }) =>
  `${id} ${epoch}`;

const renew = statement<{ ids: string; claims: string; lease_until: number }>()(
  (db, p, dialect) => {
    const claims =
      dialect === 'sqlite'
        ? sql`in (select value from json_each(${p('claims')}))`
        : sql`= ${anyOf(p('claims'))}`;
    const isHeldBy = sql<SqlBool>`status = 'active' and id || ' ' || epoch ${claims}`;
    return db
      .updateTable('jobs')
      .set({ due_at: p('lease_until') })
      .where(idInLocked(dialect, p('ids'), 'jobs', isHeldBy))
      .returning(['id', 'epoch', 'cancel_requested_at']);
  },
);

/** Extends the leases of claims; tells which of them still hold their jobs, and which are to be cancelled. */
export function renewLeases(
  tx: Transaction,
  claims: readonly { readonly id: string; readonly epoch: number }[],
  leaseUntil: number,
) {
  return tx.all(renew, {
    ids: idsParam(claims.map(({ id }) => id)),
    claims: idsParam(claims.map(claimOf)),
    lease_until: leaseUntil,
  });
}

const held = statement<{ id: string; epoch: number }>()((db, p, dialect) => {
  const query = db
    .selectFrom('jobs')
    .select('id')
    .where('id', '=', p('id'))
    .where('epoch', '=', p('epoch'))
    .where('status', '=', 'active');
  // SQLite has only one writer at a time.
  return dialect === 'sqlite' ? query : query.forShare();
});

/** Whether a claim still holds its job; if it does, it does until the transaction ends. */
export async function isHeld(
  tx: Transaction,
  { id, epoch }: { readonly id: string; readonly epoch: number },
): Promise<boolean> {
  return (await tx.first(held, { id, epoch })) !== undefined;
}

interface SettledRow extends Settled {
  /** Always `active`. A condition on a column, so that the planner expects as many rows as it gets. */
  was: JobStatus;
}

interface Settled {
  id: string;
  epoch: number;
  status: JobStatus;
  output: string | null;
  error: string | null;
  finished_at: number | null;
  run_at: number | null;
  due_at: number | null;
  refund: number;
  deaths: number;
  /** 1 to settle a job whose cancellation was requested, 0 to leave such a job unchanged. */
  cancelling: number;
}

const settle = statement<Settled>()((db, p) =>
  db
    .updateTable('jobs')
    .set((eb) => ({
      status: p('status'),
      output: p('output'),
      error: p('error'),
      finished_at: p('finished_at'),
      // Null for a job that has ended: it keeps the moment at which its last attempt was due.
      run_at: sql<number>`coalesce(${p('run_at')}, run_at)`,
      due_at: p('due_at'),
      attempt: eb('attempt', '-', p('refund')),
      deaths: eb('deaths', '+', p('deaths')),
    }))
    .where('id', '=', p('id'))
    .where('epoch', '=', p('epoch'))
    .where('status', '=', 'active')
    .where((eb) =>
      eb.or([eb('cancel_requested_at', 'is', null), eb(p('cancelling'), '=', sql.lit(1))]),
    ),
);

const settledTypes: Types<SettledRow> = {
  id: 'text',
  epoch: 'integer',
  was: 'text',
  status: 'text',
  output: 'text',
  error: 'text',
  finished_at: 'bigint',
  run_at: 'bigint',
  due_at: 'bigint',
  refund: 'integer',
  deaths: 'integer',
  cancelling: 'integer',
};

/** The same for many at once, on PostgreSQL; which claims it settled. */
const settleMany = statement<Lists<SettledRow>>()((db, p) =>
  db
    .updateTable('jobs')
    .from(rowsIn<SettledRow>(p, settledTypes))
    .set((eb) => ({
      status: eb.ref('given.status'),
      output: eb.ref('given.output'),
      error: eb.ref('given.error'),
      finished_at: eb.ref('given.finished_at'),
      run_at: eb.fn.coalesce('given.run_at', 'jobs.run_at'),
      due_at: eb.ref('given.due_at'),
      attempt: eb('jobs.attempt', '-', eb.ref('given.refund')),
      deaths: eb('jobs.deaths', '+', eb.ref('given.deaths')),
    }))
    // Held in one order first. Also what keeps the planner from scanning a table that it takes for small.
    .where(
      sql<SqlBool>`jobs.id = any (array(select id from jobs where id = any (${p('id')}::text[]) order by id for update))`,
    )
    .whereRef('jobs.id', '=', 'given.id')
    .whereRef('jobs.epoch', '=', 'given.epoch')
    .whereRef('jobs.status', '=', 'given.was')
    .where((eb) =>
      eb.or([eb('jobs.cancel_requested_at', 'is', null), eb('given.cancelling', '=', sql.lit(1))]),
    )
    .returning(['jobs.id', 'jobs.epoch']),
);

/** Settles attempts; the i-th result is false where the attempt no longer held the job. */
export async function settleJobs(tx: Transaction, settled: readonly Settled[]): Promise<boolean[]> {
  if (settled.length === 0) return [];
  const inOrder = settled.toSorted(inIdOrder);
  if (tx.dialect === 'postgres') {
    // Of two settlements of one claim the first counts.
    const firsts = new Map(settled.toReversed().map((one) => [claimOf(one), one]));
    const unique = inOrder
      .filter((one) => firsts.get(claimOf(one)) === one)
      .map((one) => ({ ...one, was: 'active' as const }));
    const rows = await tx.all(settleMany, listsOf(unique, settledTypes));
    const claims = new Set(rows.map(claimOf));
    return settled.map((one) => claims.has(claimOf(one)) && firsts.get(claimOf(one)) === one);
  }
  const changed = await tx.changes(settle, inOrder);
  const settledOnes = new Set(inOrder.filter((_, i) => (changed[i] ?? 0) > 0));
  return settled.map((one) => settledOnes.has(one));
}

const cancelQueued = statement<{ ids: string; error: string; now: number }>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({
      status: 'cancelled',
      error: p('error'),
      // Not before it began, where the clock was set back.
      finished_at: sql<number>`${sql.raw(dialect === 'sqlite' ? 'max' : 'greatest')}(${p('now')}, coalesce(started_at, 0))`,
      due_at: null,
    })
    .where(idInLocked(dialect, p('ids'), 'jobs', sql<SqlBool>`status = 'queued'`))
    .returning([
      'id',
      'organization_id',
      'agent_id',
      'conversation_id',
      'skill_category',
      'skill_name',
      'skill_version',
      'trigger_type',
      'epoch',
      'attempt',
    ]),
);

/** Cancels the queued ones of the jobs and returns them. */
export function cancelQueuedJobs(
  tx: Transaction,
  ids: readonly string[],
  error: string,
  now: number,
) {
  return tx.all(cancelQueued, { ids: idsParam(ids), error, now });
}

const requestCancel = statement<{ id: string; now: number }>()((db, p) =>
  db
    .updateTable('jobs')
    .set({ cancel_requested_at: p('now') })
    .where('id', '=', p('id'))
    .where('status', '=', 'active')
    .returning('id'),
);

/** Marks an active job as to be stopped; undefined when it is not active. */
export function requestCancellation(tx: Transaction, id: string, now: number) {
  return tx.first(requestCancel, { id, now });
}

/** When a queued job was put into the queue, at the latest: no moment after it is recorded. */
const queuedSince = sql<number>`coalesce(started_at, created_at)`;

const bringForward = statement<{ now: number; ahead: number }>()((db, p, dialect) => {
  const least = sql.raw(dialect === 'sqlite' ? 'min' : 'least');
  const at = sql<number>`${least}(run_at, ${p('now')} + run_at - ${queuedSince})`;
  return db
    .updateTable('jobs')
    .set({
      run_at: at,
      due_at: at,
      started_at: sql<number>`case when started_at > ${p('now')} then ${p('now')} else started_at end`,
    })
    .where('status', '=', sql.lit('queued'))
    .where('due_at', '>', p('now'))
    .where(queuedSince, '>', p('ahead'));
});

const shortenLeases = statement<{ lease_until: number; ahead: number }>()((db, p) =>
  db
    .updateTable('jobs')
    .set({ due_at: p('lease_until') })
    .where('status', '=', sql.lit('active'))
    .where('due_at', '>', p('ahead')),
);

/**
 * After the clock was set back: a queued job waits no longer than its delay from now on, and a lease is
 * no longer than leases are. What another process has brought forward already stays as it is.
 */
export async function bringJobsForward(
  tx: Transaction,
  now: number,
  leaseMs: number,
): Promise<void> {
  await tx.each(bringForward, [{ now, ahead: now + setBackMs }]);
  const leaseUntil = now + leaseMs;
  await tx.each(shortenLeases, [{ lease_until: leaseUntil, ahead: leaseUntil + setBackMs }]);
}

/** `due_at` is what the index of unended jobs has. */
const ofKey = statement<{ api_key_id: string; status: JobStatus; after: string; limit: number }>()(
  (db, p) =>
    db
      .selectFrom('jobs')
      .select('id')
      .where('status', '=', p('status'))
      .where('due_at', 'is not', null)
      .where('api_key_id', '=', p('api_key_id'))
      .where('id', '>', p('after'))
      .orderBy('id')
      .limit(p('limit')),
);

/** The next jobs of an API key that wait or run, in the order of their ids. */
export function findUnendedOfKey(
  db: Handle,
  apiKeyId: string,
  status: 'queued' | 'active',
  after: string,
  limit: number,
) {
  return db.all(ofKey, { api_key_id: apiKeyId, status, after, limit });
}

const cancelling = statement<{ ids: string }>()((db, p, dialect) =>
  db
    .selectFrom('jobs')
    .select('id')
    .where(idIn(dialect, p('ids')))
    .where('status', '=', sql.lit('active'))
    .where('cancel_requested_at', 'is not', null),
);

/** The active ones of the jobs whose cancellation was requested. */
export function findCancelling(db: Handle, ids: readonly string[]) {
  return db.all(cancelling, { ids: idsParam(ids) });
}

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

const byIdsLocked = statement<{ ids: string }>()((db, p, dialect) =>
  db
    .selectFrom('jobs')
    .select('id')
    .where(idIn(dialect, p('ids')))
    .orderBy('id')
    .forUpdate(),
);

/** Locks the jobs: no other transaction changes them before this one ends. */
export async function holdJobs(tx: Transaction, ids: readonly string[]): Promise<void> {
  // SQLite has only one writer at a time.
  if (tx.dialect === 'postgres') await tx.all(byIdsLocked, { ids: idsParam(ids) });
}

const dueQueued = (isScheduled: '=' | '<>') =>
  statement<{ now: number; limit: number }>()((db, p) =>
    db
      .selectFrom('jobs')
      .select(['id', 'epoch'])
      .where('status', '=', sql.lit('queued'))
      .where('trigger_type', isScheduled, sql.lit('scheduled'))
      .where('due_at', '<=', p('now'))
      .orderBy('due_at')
      .limit(p('limit')),
  );

const oldestQueued = (isScheduled: '=' | '<>') =>
  statement<{ now: number }>()((db, p) =>
    db
      .selectFrom('jobs')
      .select('due_at')
      .where('status', '=', sql.lit('queued'))
      .where('trigger_type', isScheduled, sql.lit('scheduled'))
      .where('due_at', '<=', p('now'))
      .orderBy('due_at')
      .limit(sql.lit(1)),
  );

const oldestInQueue = {
  'scheduled-jobs': oldestQueued('='),
  'skill-execution': oldestQueued('<>'),
};
const dueInQueue = { 'scheduled-jobs': dueQueued('='), 'skill-execution': dueQueued('<>') };

/** Queued jobs of one queue that are due, the longest waiting first. */
export function findDueJobs(
  db: Handle,
  queue: keyof typeof dueInQueue,
  now: number,
  limit: number,
) {
  return db.all(dueInQueue[queue], { now, limit });
}

/** When the longest waiting job of a queue fell due, undefined when none is due. */
export async function findOldestDue(
  db: Handle,
  queue: keyof typeof dueInQueue,
  now: number,
): Promise<number | undefined> {
  return (await db.first(oldestInQueue[queue], { now }))?.due_at ?? undefined;
}

const oldestOf = statement<{ organization_id: string; now: number }>()((db, p) =>
  db
    .selectFrom('jobs')
    .select('run_at')
    .where('organization_id', '=', p('organization_id'))
    // As the index has it that is for this alone.
    .where(sql<SqlBool>`status || '' = 'queued'`)
    .where('run_at', '<=', p('now'))
    .orderBy('run_at')
    .limit(sql.lit(1)),
);

/** When the longest waiting job of an organization fell due, undefined when none is due. */
export async function findOldestDueOf(
  db: Handle,
  organizationId: string,
  now: number,
): Promise<number | undefined> {
  return (await db.first(oldestOf, { organization_id: organizationId, now }))?.run_at;
}

const expired = statement<{ now: number; limit: number }>()((db, p) =>
  db
    .selectFrom('jobs')
    .select([...claimedColumns, 'cancel_requested_at'])
    .where('status', '=', 'active')
    .where('due_at', '<=', p('now'))
    .orderBy('due_at')
    .limit(p('limit')),
);

/** Active jobs whose lease had ended at `now`. */
export function findExpiredJobs(db: Handle, now: number, limit: number) {
  return db.all(expired, { now, limit });
}

export const { change: changeJobCounts, fold: foldJobCounts } = createCounts('job_counts', [
  'organization_id',
  'agent_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'trigger_type',
]);
