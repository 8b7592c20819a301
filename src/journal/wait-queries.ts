/** The queries on steps that wait. */
import type { Transaction } from '../database/database.ts';
import { statement } from '../database/statement.ts';
import type { StepStatus } from '../database/tables.ts';
import type { WaitResult } from './wait-kinds.ts';

/** The end of a waiting step. */
interface WaitEnd {
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
  ends: readonly WaitEnd[],
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
