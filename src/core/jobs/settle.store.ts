/**
 * The ends of jobs: attempts settled, waiting jobs cancelled. A settlement is guarded by the job's
 * epoch, so a worker that has lost its lease changes nothing.
 */
import { type Selectable, type SqlBool, sql } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';
import { greatestOf } from '../../adapters/database/extremes.ts';
import { idIn, idInLocked } from '../../adapters/database/ids-in.ts';
import { type Lists, listsOf, rowsIn, type Types } from '../../adapters/database/rows-in.ts';
import { allRows, listOf, statement } from '../../adapters/database/statement.ts';
import type { JobStatus, JobsTable } from '../../adapters/database/tables.ts';
import { claimOf, hintedColumns, inIdOrder, type JobRow } from './jobs.store.ts';

interface GivenRow extends SettledRow {
  /** Always `active`. A condition on a column, so that the planner expects as many rows as it gets. */
  was: JobStatus;
}

interface SettledRow {
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
  /** Milliseconds of the claim, which end in a wait; 0 for others. */
  active_ms: number;
  /** 1 to settle a job whose cancellation was requested, 0 to leave such a job unchanged. */
  cancelling: number;
}

const settle = statement<SettledRow>()((db, p) =>
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
      active_ms: eb('active_ms', '+', p('active_ms')),
    }))
    .where('id', '=', p('id'))
    .where('epoch', '=', p('epoch'))
    .where('status', '=', 'active')
    .where((eb) =>
      eb.or([eb('cancel_requested_at', 'is', null), eb(p('cancelling'), '=', sql.lit(1))]),
    ),
);

const settledTypes: Types<GivenRow> = {
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
  active_ms: 'bigint',
  cancelling: 'integer',
};

/** The same for many at once, on PostgreSQL; which claims it settled. */
const settleMany = statement<Lists<GivenRow>>()((db, p) =>
  db
    .updateTable('jobs')
    .from(rowsIn<GivenRow>('postgres', p, settledTypes))
    .set((eb) => ({
      status: eb.ref('given.status'),
      output: eb.ref('given.output'),
      error: eb.ref('given.error'),
      finished_at: eb.ref('given.finished_at'),
      run_at: eb.fn.coalesce('given.run_at', 'jobs.run_at'),
      due_at: eb.ref('given.due_at'),
      attempt: eb('jobs.attempt', '-', eb.ref('given.refund')),
      deaths: eb('jobs.deaths', '+', eb.ref('given.deaths')),
      active_ms: eb('jobs.active_ms', '+', eb.ref('given.active_ms')),
    }))
    // Held in one order first. Also what keeps the planner from scanning a table that it takes for small. The
    // ids by a subquery: a plan for few ids, made at each call, would look cheaper than the one that is kept.
    .where(
      sql<SqlBool>`jobs.id = any (array(select id from jobs where id = any (array(select unnest(${p('id')}::text[]))) order by id for update))`,
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
export async function settleJobs(
  tx: Transaction,
  settled: readonly SettledRow[],
): Promise<boolean[]> {
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

type Progress = Pick<Selectable<JobsTable>, 'attempts_before' | 'max_attempts' | 'idle_claims'>;

const progress = statement<Progress & { id: string; epoch: number }>()((db, p) =>
  db
    .updateTable('jobs')
    .set({
      attempts_before: p('attempts_before'),
      max_attempts: p('max_attempts'),
      idle_claims: p('idle_claims'),
    })
    .where('id', '=', p('id'))
    .where('epoch', '=', p('epoch'))
    .where('status', '=', 'active'),
);

/** Records the progress of models' runs whose claims end. */
export function recordProgress(
  tx: Transaction,
  rows: readonly (Progress & { readonly id: string; readonly epoch: number })[],
): Promise<void> {
  return tx.each(progress, rows.toSorted(inIdOrder));
}

/** The columns of a job that tell what its end means to others. */
export const endedColumns = [
  ...hintedColumns,
  'agent_id',
  'conversation_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'parent_job_id',
  'parent_step',
  'epoch',
  'attempt',
  'started_at',
  'resumed_at',
  'gated',
] as const;
export type EndedJob = Pick<JobRow, (typeof endedColumns)[number]>;

const cancelOf = (status: 'queued' | 'waiting') =>
  statement<{ ids: readonly string[]; error: string; now: number }>()((db, p, dialect) =>
    db
      .updateTable('jobs')
      .set({
        status: 'cancelled',
        error: p('error'),
        // Not before it began, where the clock was set back.
        finished_at: sql<number>`${greatestOf(dialect)}(${p('now')}, coalesce(started_at, 0))`,
        due_at: null,
        held_by: null,
      })
      .where(
        idInLocked(dialect, listOf(p, 'ids'), 'jobs', sql<SqlBool>`status = ${sql.lit(status)}`),
      )
      .returning([...endedColumns]),
  );
const cancelStatements = { queued: cancelOf('queued'), waiting: cancelOf('waiting') };

/** Cancels those of the jobs that are queued, or waiting, and returns them. */
export function cancelJobsFrom(
  tx: Transaction,
  status: keyof typeof cancelStatements,
  ids: readonly string[],
  error: string,
  now: number,
): Promise<EndedJob[]> {
  return tx.all(cancelStatements[status], { ids, error, now });
}

/** The states of jobs, and of which of their claims they are. */
export const listClaimStates = allRows<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('jobs')
    .select(['id', 'epoch', 'status'])
    .where(idIn(dialect, listOf(p, 'ids'))),
);
