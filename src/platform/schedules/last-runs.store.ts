/** The queries on the last run of each scheduled job, which has a row of its own. */
import type { Transaction } from '../../adapters/database/database.ts';
import { inOrderOfSchedules } from '../../adapters/database/lock-order.ts';
import { statement } from '../../adapters/database/statement.ts';

interface BegunRun {
  scheduled_job_id: string;
  at: number;
  job_id: string;
}

const begin = statement<BegunRun>()((db, p) =>
  db
    .updateTable('scheduled_job_last_runs')
    .set({ last_run_at: p('at'), last_run_status: 'active', last_run_job_id: p('job_id') })
    .where('scheduled_job_id', '=', p('scheduled_job_id')),
);

/** Records that runs are under way. Call it last in a transaction (see the migration). */
export async function beginLastRuns(tx: Transaction, runs: readonly BegunRun[]): Promise<void> {
  await tx.each(begin, runs.toSorted(inOrderOfSchedules));
}

const clamp = statement<{ now: number }>()((db, p) =>
  db
    .updateTable('scheduled_job_last_runs')
    .set({ last_run_at: p('now') })
    .where('last_run_at', '>', p('now')),
);

/** After the clock was set back: no last run lies in the future. */
export async function clampLastRuns(tx: Transaction, now: number): Promise<void> {
  await tx.each(clamp, [{ now }]);
}
