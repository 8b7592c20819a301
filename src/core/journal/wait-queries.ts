/** The queries on steps that wait. */

import { sql } from 'kysely';
import type { Transaction } from '../../adapters/database/database.ts';
import { isIn } from '../../adapters/database/ids-in.ts';
import { allRows, listOf, statement } from '../../adapters/database/statement.ts';
import type { StepStatus } from '../../adapters/database/tables.ts';
import type { WaitResult } from './wait-kinds.ts';

/** The end of a waiting step. */
interface EndedWaitStep {
  readonly job_id: string;
  readonly n: number;
  readonly result: WaitResult;
}

interface EndedWait {
  job_id: string;
  n: number;
  status: Exclude<StepStatus, 'active' | 'waiting'>;
  result: string | null;
  error: string | null;
  now: number;
}

const end = statement<EndedWait>()((db, p) =>
  db
    .updateTable('job_steps')
    .set({
      status: p('status'),
      result: p('result'),
      error: p('error'),
      finished_at: p('now'),
    })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n'))
    .where('status', '=', 'waiting'),
);

/** Ends waiting steps. The i-th: whether the step was waiting, so that this end is the one that counts. */
export async function endWaitingSteps(
  tx: Transaction,
  ends: readonly EndedWaitStep[],
  now: number,
): Promise<boolean[]> {
  const changes = await tx.changes(
    end,
    ends.map(({ job_id, n, result }): EndedWait => {
      if ('error' in result) {
        const error = JSON.stringify(result.error);
        return { job_id, n, status: 'failed', result: null, error, now };
      }
      const value = JSON.stringify({ value: result.value ?? null });
      return { job_id, n, status: 'completed', result: value, error: null, now };
    }),
  );
  return changes.map((count) => count > 0);
}

/** The waiting steps of jobs. */
export const listOpenWaits = allRows<{ ids: readonly string[] }, Transaction>()((db, p, dialect) =>
  db
    .selectFrom('job_steps')
    .select(['job_id', 'n', 'due_at'])
    .where(isIn(dialect, sql`job_id`, listOf(p, 'ids')))
    .where('status', '=', 'waiting'),
);

/** Ends the steps of jobs that wait or are under way; the kinds of each job. */
export const abandonSteps = allRows<
  { ids: readonly string[]; error: string; now: number },
  Transaction
>()((db, p, dialect) =>
  db
    .updateTable('job_steps')
    .set({ status: 'interrupted', error: p('error'), finished_at: p('now') })
    .where(isIn(dialect, sql`job_id`, listOf(p, 'ids')))
    .where('status', 'in', ['waiting', 'active'])
    .returning(['job_id', 'kind']),
);

/** The waiting steps of a job. */
export const listWaiting = allRows<{ job_id: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select('n')
    .where('job_id', '=', p('job_id'))
    .where('status', '=', 'waiting'),
);
