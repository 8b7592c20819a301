/** The queries on the runs of schedules by their jobs. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Dialect, Transaction } from '../../adapters/database/database.ts';
import { isIn } from '../../adapters/database/ids-in.ts';
import { inOrderOfSchedules } from '../../adapters/database/lock-order.ts';
import { allRows, firstRow, listOf, statement } from '../../adapters/database/statement.ts';
import type { LastRunStatus } from '../../adapters/database/tables.ts';

/** `job_id IN (…)`, for the index on those that are not null. */
function jobIdIn(dialect: Dialect, ids: RawBuilder<string>): RawBuilder<SqlBool> {
  return sql<SqlBool>`job_id is not null and ${isIn(dialect, sql`job_id`, ids)}`;
}

/** Marks the runs of these jobs as ended. The caller has locked the jobs. */
export const endRunsOfJobs = allRows<{ ids: readonly string[] }, Transaction>()((db, p, dialect) =>
  db
    .updateTable('scheduled_runs')
    .set({ ended: 1 })
    .where(jobIdIn(dialect, listOf(p, 'ids')))
    .returning(['job_id', 'scheduled_job_id', 'scheduled_for']),
);

export const findRunOfJob = firstRow<{ job_id: string }>()((db, p) =>
  db.selectFrom('scheduled_runs').select('scheduled_job_id').where('job_id', '=', p('job_id')),
);

/** The runs among those of these jobs that may not be retried. The caller has locked the jobs. */
export const listRunsWithoutRetry = allRows<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('scheduled_runs')
    .select('job_id')
    .where(jobIdIn(dialect, listOf(p, 'ids')))
    .where('unwanted', '=', 1),
);

interface EndedLastRun {
  scheduled_job_id: string;
  job_id: string;
  status: LastRunStatus;
}

const end = statement<EndedLastRun>()((db, p) =>
  db
    .updateTable('scheduled_job_last_runs')
    .set({ last_run_status: p('status') })
    .where('scheduled_job_id', '=', p('scheduled_job_id'))
    .where('last_run_job_id', '=', p('job_id')),
);

/** Records how runs ended, if they are still the last ones. Call it last in a transaction. */
export async function endLastRuns(tx: Transaction, runs: readonly EndedLastRun[]): Promise<void> {
  await tx.each(end, runs.toSorted(inOrderOfSchedules));
}
