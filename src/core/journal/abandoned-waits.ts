/**
 * Abandoned waits: steps of a job that still waited when the job ended. They end in the transaction that
 * ends the job, and each kind removes what it has recorded for them.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import type { WaitKind } from '../../adapters/database/tables.ts';
import { isWaitKind, type WaitKinds } from './wait-kinds.ts';
import { abandonSteps } from './wait-queries.ts';

/** A job that has ended. */
export interface AbandonedJob {
  readonly id: string;
  readonly isCancelled: boolean;
}

/** Ends the open waits of ended jobs, and the steps around them. The caller has locked the jobs. */
export async function abandonWaits(
  tx: Transaction,
  kinds: WaitKinds,
  jobs: readonly AbandonedJob[],
  now: number,
): Promise<void> {
  const byKind = new Map<WaitKind, Set<string>>();
  for (const isCancelled of [true, false]) {
    const ids = jobs.filter((job) => job.isCancelled === isCancelled).map(({ id }) => id);
    if (ids.length === 0) continue;
    const error = JSON.stringify(isCancelled ? cancelled : over);
    for (const { kind, job_id } of await abandonSteps(tx, { ids, error, now })) {
      if (!isWaitKind(kind)) continue;
      byKind.set(kind, (byKind.get(kind) ?? new Set()).add(job_id));
    }
  }
  for (const [kind, ids] of byKind) await kinds.get(kind)?.abandon(tx, [...ids].sort(), now);
}

const cancelled = {
  code: 'cancelled',
  message: 'The job was cancelled while this was under way',
};

const over = { code: 'cancelled', message: 'The job ended while this was under way' };
