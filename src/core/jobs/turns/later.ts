/**
 * Jobs that begin later. Hints of a moment far ahead would take memory for months, and timers end after 24 days: a job
 * gets its hint only shortly before it is due. Jobs that have not begun when they expire are cancelled. Both are part of
 * the sweep. A claim refuses an expired job, so that none begins between two sweeps.
 */
import type { Queue } from '../../../adapters/queue/queue.ts';
import type { Context } from '../../context/context.ts';
import { lockFamilies } from '../families.store.ts';
import type { HintedJob } from '../jobs.store.ts';
import { sendHint } from '../queues.ts';
import type { Settler } from '../settle.ts';
import { expiredError } from '../states.ts';
import { findComingJobs, findOverdueJobs, keepOverdue } from './later.store.ts';

/** How long before a job is due its hint is sent. */
const announcedMs = 5_000;
/** Hints that one sweep sends. A queue keeps no more; for the others the sweep sends them once they are due. */
const announcedMax = 20_000;
/** Jobs of one transaction that expire, and transactions of one sweep. */
const expiredMax = 200;
const roundsMax = 20;

/** Sends the hint of a queued job that is due at `runAt`, unless the sweep has the time to send it. */
export function hintInTime(
  queue: Pick<Queue, 'sendHints'>,
  job: HintedJob,
  generation: number | string,
  runAt: number,
  now: number,
): void {
  const delayMs = Math.max(0, runAt - now);
  if (delayMs <= announcedMs) sendHint(queue, job, generation, delayMs);
}

const idOf = ({ id }: { readonly id: string }) => id;

export class LaterJobs {
  readonly #context: Context;
  readonly #settler: Settler;
  /** Jobs that are due by then have their hints, unless they were accepted or changed since: those get them at once. */
  #announcedTo = Number.NEGATIVE_INFINITY;

  constructor(context: Context, settler: Settler) {
    this.#context = context;
    this.#settler = settler;
  }

  /** Sends the hints of the jobs that fall due before the next sweeps. */
  async announce(): Promise<void> {
    const { database, clock, queue } = this.#context;
    if (!queue.isConnected()) return;
    const now = clock.now();
    const to = now + announcedMs;
    // After the clock was set back, all of them again.
    const from = this.#announcedTo > to ? now : Math.max(now, this.#announcedTo);
    for (const job of await findComingJobs(database.read, { from, to, limit: announcedMax })) {
      hintInTime(queue, job, 0, Number(job.run_at), now);
    }
    this.#announcedTo = to;
  }

  /** Cancels the jobs that had not begun when they expired; some a pass. */
  async expire(): Promise<void> {
    const { database, clock } = this.#context;
    for (let round = 0; round < roundsMax; round += 1) {
      const bounds = { now: clock.now(), limit: expiredMax };
      const ids = (await findOverdueJobs(database.read, bounds)).map(idOf);
      if (ids.length === 0) return;
      await database.write(async (tx) => {
        await lockFamilies(tx, ids);
        // A worker may have begun some of them since they were read.
        const overdue = await keepOverdue(tx, { ids, now: clock.now() });
        await this.#settler.cancelUnclaimed(tx, overdue.map(idOf), expiredError);
      });
      if (ids.length < expiredMax) return;
    }
  }
}
