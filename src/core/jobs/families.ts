/**
 * The effects of a job's end on its family: the job whose run started it, and the jobs that its own run
 * has started. The parent gets the result or the error of a child in the transaction that ends the child.
 * A job that fails or is cancelled takes the unended jobs below it with it: queued and waiting ones end at
 * once, active ones are requested to stop. Its transaction ends the first of them and records the rest, if
 * they are many, for further transactions, also after a crash. A job that completes leaves them alone. A job
 * without parent and steps pays nothing for any of this.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import type { JobStatus } from '../../adapters/database/tables.ts';
import { abandonWaits } from '../journal/abandoned-waits.ts';
import type { WaitResult } from '../journal/wait-kinds.ts';
import type { EndOfWait } from './end-waits.ts';
import {
  descendantsMax,
  leaveCancellations,
  listDescendants,
  listFamily,
  requestCancellations,
} from './families.store.ts';
import { cancelJobsFrom } from './settle.store.ts';
import type { Settler } from './settle.ts';
import type { Settled } from './settle-effects.ts';
import { isFinal, type JobError } from './states.ts';

const parentEnded: JobError = {
  code: 'cancelled',
  message: 'The job that started this one has failed or was cancelled',
};

/** The job and up to 1,000 jobs below it, ended ones too. */
export const familyOf = listFamily;

/** The statuses of unended jobs that no worker holds. */
export type Unclaimed = 'queued' | 'waiting';

/** Cancels those of the jobs that have one of the statuses. The caller records the effects. */
export async function cancelUnclaimed(
  { context, parts }: Settler,
  tx: Transaction,
  statuses: readonly Unclaimed[],
  ids: readonly string[],
  error: JobError,
  now: number,
): Promise<Settled[]> {
  const transition = { status: 'cancelled', error } as const;
  const cancelledFrom = async (from: Unclaimed) => {
    if (!statuses.includes(from)) return [];
    const jobs = await cancelJobsFrom(tx, from, ids, JSON.stringify(error), now);
    return jobs.map((job): Settled => ({ job, from, transition, durationMs: 0, messages: [] }));
  };
  const queued = await cancelledFrom('queued');
  const waiting = queued.length < ids.length ? await cancelledFrom('waiting') : [];
  const cancelled = [...queued, ...waiting];
  // A queued job that has begun before may have left waits.
  const begun = cancelled.filter(({ job }) => job.epoch > 0);
  if (begun.length > 0) {
    const abandoned = begun.map(({ job }) => ({ id: job.id, isCancelled: true }));
    await abandonWaits(tx, parts.waitKinds, abandoned, context.clock.now());
  }
  return cancelled;
}

/**
 * Cancels jobs below others that were cancelled or have failed, and returns those that this ended. Of more
 * than one transaction should change, the rest is left on record for `cancelRest`. The caller has locked the
 * families of the jobs, and records the effects.
 */
export async function cancelDescendants(
  settler: Settler,
  tx: Transaction,
  jobIds: readonly string[],
  now: number,
): Promise<Settled[]> {
  if (jobIds.length === 0) return [];
  const all = await listDescendants(tx, jobIds);
  const found = all.slice(0, descendantsMax);
  if (found.length === 0) return [];
  const idsIn = (isActive: boolean) =>
    found.filter(({ status }) => (status === 'active') === isActive).map(({ id }) => id);
  const active = idsIn(true);
  const stopped = active.length === 0 ? [] : await requestCancellations(tx, { ids: active, now });
  if (active.length > 0) {
    tx.afterCommit(() => {
      for (const id of active) settler.parts.running.cancel(id);
    });
  }
  const unclaimed = ['queued', 'waiting'] as const;
  const cancelled = await cancelUnclaimed(settler, tx, unclaimed, idsIn(false), parentEnded, now);
  // Where there are many, some are not locked, and may have changed since they were read.
  if (stopped.length + cancelled.length < all.length) {
    const begun = found.filter(({ epoch }) => epoch > 0).map(({ id }) => id);
    await leaveCancellations(tx, [...jobIds, ...begun]);
  }
  return cancelled.map((one) => ({ ...one, isWithParent: true }));
}

type Ending = Pick<Settled, 'job' | 'from' | 'transition'> & { readonly openedJournal?: boolean };

/** Whether steps of the job may be on record: of the claim that ends, or of one before it. */
export function mayHaveSteps({ job, from, openedJournal = false }: Ending): boolean {
  return openedJournal || job.epoch > (from === 'active' ? 1 : 0);
}

/** Whether jobs may be left below an ended one: it has failed or was cancelled, and may have started some. */
export function mayLeaveDescendants(ending: Ending): boolean {
  const { status } = ending.transition;
  return (status === 'failed' || status === 'cancelled') && mayHaveSteps(ending);
}

export function isChild({ job }: Pick<Settled, 'job'>): boolean {
  return job.parent_job_id !== null;
}

/** What ended children mean to the steps of their parents that wait for them. */
export function endsOfChildren(settled: readonly Settled[]): EndOfWait[] {
  return settled.flatMap((one) => {
    const { parent_job_id: job_id, parent_step: n } = one.job;
    if (job_id === null || n === null || one.isWithParent) return [];
    const { transition } = one;
    const output = 'output' in transition ? transition.output : null;
    const error = 'error' in transition ? transition.error : null;
    const result = resultOfChild(transition.status, output, error);
    return result === null ? [] : [{ job_id, n, result }];
  });
}

/** The result of a child for its parent; null for a child that has not ended. The output is JSON text. */
function resultOfChild(
  status: JobStatus,
  output: string | null,
  error: JobError | null,
): WaitResult | null {
  if (!isFinal(status)) return null;
  if (status === 'completed') return { value: output === null ? null : JSON.parse(output) };
  return error === null ? null : { error: { ...error, retryable: false } };
}
