/** The queries on the outcomes of due slots. */
import { type Selectable, sql } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn, isIn } from '../../adapters/database/ids-in.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { allRows, listOf } from '../../adapters/database/statement.ts';
import type { JobStatus, ScheduledRunsTable } from '../../adapters/database/tables.ts';
import { newId } from '../../kernel/ids.ts';

export type RunRow = Selectable<ScheduledRunsTable>;
/** With the status of its job; null when it made none, or retention has deleted it. */
export type ListedRun = RunRow & { status: JobStatus | null };

/** A row for a slot that has come, or for a run that a client requested, which has no slot. */
export function newRun(
  of: { id: string; organization_id: string },
  record: Pick<RunRow, 'slot' | 'outcome' | 'slots' | 'message'>,
  jobId: string | null,
  now: number,
): RunRow {
  const { slot, outcome, slots, message } = record;
  return {
    id: newId(),
    organization_id: of.organization_id,
    scheduled_job_id: of.id,
    slot,
    scheduled_for: slot ?? now,
    outcome,
    slots,
    message,
    job_id: jobId,
    unwanted: 0,
    ended: jobId === null ? 1 : 0,
    created_at: now,
  };
}

/** Adds runs, in order. The unique slot of a scheduled job makes a second row of one impossible. */
export async function insertRuns(tx: Transaction, runs: readonly RunRow[]): Promise<void> {
  await tx.insert('scheduled_runs', runs);
}

/** Due slots that have a row already: there are some only after the clock was set back. */
export const findTakenSlots = allRows<{ ids: readonly string[]; now: number }, Transaction>()(
  (db, p, dialect) =>
    db
      .selectFrom('scheduled_jobs')
      .innerJoin('scheduled_runs', 'scheduled_runs.scheduled_job_id', 'scheduled_jobs.id')
      .select('scheduled_runs.scheduled_job_id')
      .select(sql<number>`scheduled_runs.slot`.as('slot'))
      .where('scheduled_jobs.id', 'in', (eb) =>
        eb
          .selectFrom('scheduled_jobs')
          .select('id')
          .where(idIn(dialect, listOf(p, 'ids'))),
      )
      .whereRef('scheduled_runs.slot', '>=', 'scheduled_jobs.next_run_at')
      .where('scheduled_runs.slot', '<=', p('now')),
);

// A literal, not a parameter: otherwise the partial index of unended runs is not used.
const goingOn = sql.lit(0);

const findRunsGoingOn = allRows<{ scheduled_job_id: string }>()((db, p) =>
  db
    .selectFrom('scheduled_runs')
    .select('job_id')
    .where('scheduled_job_id', '=', p('scheduled_job_id'))
    .where('ended', '=', goingOn),
);

/** The unended jobs of a scheduled job's runs. No more begin while the scheduled job is locked. */
export async function findJobsGoingOn(tx: Transaction, scheduledJobId: string): Promise<string[]> {
  const runs = await findRunsGoingOn(tx, { scheduled_job_id: scheduledJobId });
  return runs.flatMap(({ job_id }) => job_id ?? []);
}

const findRunningOnes = allRows<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('scheduled_runs')
    .select('scheduled_job_id')
    .distinct()
    .where(isIn(dialect, sql`scheduled_job_id`, listOf(p, 'ids')))
    .where('ended', '=', goingOn),
);

/**
 * The scheduled jobs among these with a run under way: the last run, or an earlier one beside which a client started
 * another. Call it after locking them: on PostgreSQL a statement that locks reads the state from before it got the lock.
 */
export async function findRunning(tx: Transaction, ids: readonly string[]): Promise<Set<string>> {
  const rows = await findRunningOnes(tx, { ids });
  return new Set(rows.map(({ scheduled_job_id }) => scheduled_job_id));
}

/** Forbids retries of the unended runs of a scheduled job (the column `unwanted`). The caller has locked their jobs. */
export const forbidRetries = allRows<{ scheduled_job_id: string }, Transaction>()((db, p) =>
  db
    .updateTable('scheduled_runs')
    .set({ unwanted: 1 })
    .where('scheduled_job_id', '=', p('scheduled_job_id'))
    .where('ended', '=', goingOn),
);

/** A page of the runs of a scheduled job, newest first, and how many there are in all. */
export async function listRuns(
  db: Handle,
  scheduledJobId: string,
  page: PageAsked,
): Promise<{ data: ListedRun[]; total: number }> {
  const query = db.kysely
    .selectFrom('scheduled_runs')
    .where('scheduled_job_id', '=', scheduledJobId);
  // The subquery skips the rows before the page in the index, without reading them or their jobs.
  const newest = query.select('id').orderBy('id', 'desc').limit(page.limit).offset(page.offset);
  const data = await db.kysely
    .selectFrom('scheduled_runs')
    .leftJoin('jobs', 'jobs.id', 'scheduled_runs.job_id')
    .selectAll('scheduled_runs')
    .select('jobs.status')
    .where('scheduled_runs.id', 'in', newest)
    .orderBy('scheduled_runs.id', 'desc')
    .execute();
  return { data, total: await countOf(query) };
}

const findOld = allRows<{ before: string; limit: number }>()((db, p) =>
  db
    .selectFrom('scheduled_runs')
    .leftJoin('jobs', 'jobs.id', 'scheduled_runs.job_id')
    .select('scheduled_runs.id')
    .where('scheduled_runs.id', '<', p('before'))
    // No job, a deleted one, or one that has ended.
    .where('jobs.due_at', 'is', null)
    .orderBy('scheduled_runs.id')
    .limit(p('limit')),
);
const removeRuns = allRows<{ ids: readonly string[] }>()((db, p, dialect) =>
  db.deleteFrom('scheduled_runs').where(idIn(dialect, listOf(p, 'ids'))),
);

/** Deletes up to `limit` ended runs with an id below `before`; returns how many. */
export async function deleteRuns(tx: Transaction, before: string, limit: number): Promise<number> {
  const runs = await findOld(tx, { before, limit });
  await removeRuns(tx, { ids: runs.map(({ id }) => id) });
  return runs.length;
}
