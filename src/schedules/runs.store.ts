/** Every query on what became of slots. */
import { type RawBuilder, type Selectable, type SqlBool, sql } from 'kysely';
import type { Dialect, Handle, Transaction } from '../database/database.ts';
import { idIn, idsParam } from '../database/ids-in.ts';
import { statement } from '../database/statement.ts';
import type { JobStatus, ScheduledRunsTable } from '../database/tables.ts';

export type RunRow = Selectable<ScheduledRunsTable>;
/** With the status of its job; null when it made none, or retention has deleted it. */
export type ListedRun = RunRow & { status: JobStatus | null };

/** Adds runs, in order. The unique slot of a scheduled job makes a second row of one impossible. */
export async function insertRuns(tx: Transaction, runs: readonly RunRow[]): Promise<void> {
  await tx.insert('scheduled_runs', runs);
}

const taken = statement<{ ids: string; now: number }>()((db, p, dialect) =>
  db
    .selectFrom('scheduled_jobs')
    .innerJoin('scheduled_runs', 'scheduled_runs.scheduled_job_id', 'scheduled_jobs.id')
    .select(['scheduled_runs.scheduled_job_id', 'scheduled_runs.slot'])
    .where('scheduled_jobs.id', 'in', (eb) =>
      eb
        .selectFrom('scheduled_jobs')
        .select('id')
        .where(idIn(dialect, p('ids'))),
    )
    .whereRef('scheduled_runs.slot', '>=', 'scheduled_jobs.next_run_at')
    .where('scheduled_runs.slot', '<=', p('now')),
);

/** Due slots that have a row already: there are some only after the clock was set back. */
export async function findTakenSlots(
  tx: Transaction,
  ids: readonly string[],
  now: number,
): Promise<{ scheduled_job_id: string; slot: number }[]> {
  const rows = await tx.all(taken, { ids: idsParam(ids), now });
  return rows as { scheduled_job_id: string; slot: number }[];
}

/** `job_id IN (…)`, for the index on those that are not null. */
function jobIdIn(dialect: Dialect, ids: RawBuilder<string>): RawBuilder<SqlBool> {
  return dialect === 'sqlite'
    ? sql<SqlBool>`job_id is not null and job_id in (select value from json_each(${ids}))`
    : sql<SqlBool>`job_id is not null and job_id in (select json_array_elements_text(${ids}::json))`;
}

const ofJobs = statement<{ ids: string }>()((db, p, dialect) =>
  db
    .selectFrom('scheduled_runs')
    .select(['job_id', 'scheduled_job_id', 'scheduled_for'])
    .where(jobIdIn(dialect, p('ids'))),
);

/** The runs that these jobs are. */
export function findRunsOfJobs(tx: Transaction, jobIds: readonly string[]) {
  return tx.all(ofJobs, { ids: idsParam(jobIds) });
}

const ofJobsLocked = statement<{ ids: string }>()((db, p, dialect) => {
  const query = db
    .selectFrom('scheduled_runs')
    .select(['job_id', 'unwanted'])
    .where(jobIdIn(dialect, p('ids')))
    .orderBy('id');
  return dialect === 'sqlite' ? query : query.forUpdate();
});

/** Whether the runs that these jobs are may not be tried again; true until the transaction ends. */
export function lockRunsOfJobs(tx: Transaction, jobIds: readonly string[]) {
  return tx.all(ofJobsLocked, { ids: idsParam(jobIds) });
}

const unfinished = statement<{ scheduled_job_id: string }>()((db, p, dialect) => {
  // From the unfinished jobs, which are few beside the runs that are kept: SQLite joins in this order.
  const query = db
    .selectFrom('jobs')
    .crossJoin('scheduled_runs')
    .select(['scheduled_runs.id', 'scheduled_runs.job_id'])
    .where('jobs.status', 'in', ['queued', 'active'])
    .where('jobs.due_at', 'is not', null)
    .whereRef('scheduled_runs.job_id', '=', 'jobs.id')
    .where('scheduled_runs.job_id', 'is not', null)
    .where('scheduled_runs.scheduled_job_id', '=', p('scheduled_job_id'))
    .orderBy('scheduled_runs.id');
  return dialect === 'sqlite' ? query : query.forUpdate('scheduled_runs');
});
const markUnwanted = statement<{ id: string }>()((db, p) =>
  db.updateTable('scheduled_runs').set({ unwanted: 1 }).where('id', '=', p('id')),
);

/** Marks the runs of a scheduled job that have not ended as unwanted; their jobs' ids. */
export async function markRunsUnwanted(tx: Transaction, scheduledJobId: string): Promise<string[]> {
  const runs = await tx.all(unfinished, { scheduled_job_id: scheduledJobId });
  await tx.each(markUnwanted, runs);
  return runs.flatMap(({ job_id }) => job_id ?? []);
}

/** A page of the runs of a scheduled job, newest first, and how many there are in all. */
export async function listRuns(
  db: Handle,
  scheduledJobId: string,
  page: { limit: number; offset: number },
): Promise<{ runs: ListedRun[]; total: number }> {
  const query = db.kysely
    .selectFrom('scheduled_runs')
    .where('scheduled_job_id', '=', scheduledJobId);
  const runs = await query
    .leftJoin('jobs', 'jobs.id', 'scheduled_runs.job_id')
    .selectAll('scheduled_runs')
    .select('jobs.status')
    .orderBy('scheduled_runs.id', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute();
  const row = await query.select((eb) => eb.fn.countAll<number>().as('n')).executeTakeFirst();
  return { runs, total: Number(row?.n ?? 0) };
}

const old = statement<{ before: string; limit: number }>()((db, p) =>
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
const removeRuns = statement<{ ids: string }>()((db, p, dialect) =>
  db.deleteFrom('scheduled_runs').where(idIn(dialect, p('ids'))),
);

/** Deletes at most `limit` runs whose id lies before `before` and that go on no more; how many. */
export async function deleteRuns(tx: Transaction, before: string, limit: number): Promise<number> {
  const runs = await tx.all(old, { before, limit });
  await tx.all(removeRuns, { ids: idsParam(runs.map(({ id }) => id)) });
  return runs.length;
}
