/**
 * Ends waits of runs from outside: an event that came, a decision, the end of a child job. A wait ends
 * once, by compare-and-set in the caller's transaction; a wait that has ended already, or whose job has,
 * is left as it is. The jobs are woken after the commit: a waiting one is due at once, and the worker that holds
 * a loaded run reads the end from the database.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import type { Context } from '../context/context.ts';
import type { WaitResult } from '../journal/wait-kinds.ts';
import { endWaitingSteps } from '../journal/wait-queries.ts';
import { lockJobs } from './jobs.store.ts';
import { sendHint } from './queues.ts';
import type { RunningJobs } from './runs/running-jobs.ts';
import { wakeJobs } from './turns/waiting.store.ts';

/** The end of a wait: of step `n` of a job. */
export interface EndOfWait {
  readonly job_id: string;
  readonly n: number;
  readonly result: WaitResult;
}

/** Locks jobs as `endWaits` does, for a transaction that locks something else before it ends their waits. */
export { lockJobs };

export class WaitEnds {
  readonly #context: Context;
  readonly #running: RunningJobs;

  constructor(context: Context, running: RunningJobs) {
    this.#context = context;
    this.#running = running;
  }

  /**
   * Ends waiting steps. The i-th result: whether this call ended the i-th step. Locks the jobs first, in
   * the order of their ids.
   */
  async endWaits(tx: Transaction, ends: readonly EndOfWait[], now: number): Promise<boolean[]> {
    if (ends.length === 0) return [];
    const ids = [...new Set(ends.map(({ job_id }) => job_id))];
    await lockJobs(tx, ids);
    const ended = await endWaitingSteps(tx, ends, now);
    const woken = ids.filter((id) => ends.some(({ job_id }, i) => job_id === id && ended[i]));
    if (woken.length === 0) return ended;
    const waiting = await wakeJobs(tx, woken, now);
    const unloaded = new Set(waiting.map(({ id }) => id));
    const lastOf = new Map(ends.map(({ job_id, n }) => [job_id, n]));
    tx.afterCommit(() => {
      for (const id of woken) if (!unloaded.has(id)) this.#running.wake(id);
      for (const job of waiting) {
        // One for each end: the claim for an earlier hint may have found the job locked by this transaction.
        sendHint(this.#context.queue, job, `${job.epoch}-woken-${lastOf.get(job.id)}`);
      }
    });
    return ended;
  }
}
