/**
 * Recover: the sweep that makes a lost hint harmless. It sends hints for every job that is due, and
 * ends attempts whose lease has expired because their process is gone. It runs at each start and
 * every second, in every mode, so recovery after a crash is the same code as everyday work.
 */
import type { Database } from '../database/database.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Logger } from '../kernel/log.ts';
import { createSetBackWatch } from '../kernel/set-back.ts';
import { createStallDetector } from '../kernel/stall-detector.ts';
import { type Queue, roundOf } from '../queue/queue.ts';
import { bringJobsForward, findDueJobs, findExpiredJobs } from './jobs.store.ts';
import type { Settle } from './settle.ts';
import type { Ending } from './states.ts';

/** The queues of jobs. */
export const jobQueues = ['skill-execution', 'scheduled-jobs'] as const;
/** Due jobs of a queue for which one sweep sends hints. */
const dueMax = 20_000;
/** Lost attempts that are ended together. */
const expiredMax = 500;

const workerLost: Ending = {
  kind: 'failed',
  error: { code: 'worker_lost', message: 'The process that ran this attempt has gone' },
  retryable: true,
};

export interface Recovery {
  /** One pass. */
  sweep(): Promise<void>;
  /**
   * Ends every attempt at once, without regard to its lease: for the start of an embedded platform,
   * when no process can still be running an attempt.
   */
  endOrphans(): Promise<number>;
}

export function createRecovery(parts: {
  database: Database;
  queue: Queue;
  settle: Settle;
  /** Renews the leases of this process's own runs. */
  renewOwn(): Promise<void>;
  clock: Clock;
  log: Logger;
  /** How long leases are. */
  leaseMs: number;
  /**
   * How long the sweep leaves a due job to its first hint. For a job that has been due for longer, it
   * sends a new hint every few seconds, because the process that took an earlier one may have died.
   */
  hintRetryMs?: number;
  /** After a stall: how long workers may still renew leases that have expired meanwhile. */
  graceMs?: number;
  /** Called with the number of attempts that were lost with their processes. */
  onLost?: (attempts: number) => void;
}): Recovery {
  const { database, queue, settle, renewOwn, clock, log, leaseMs } = parts;
  const { hintRetryMs = 0, graceMs = 0 } = parts;
  const { onLost } = parts;
  const isInGrace = createStallDetector(clock, graceMs);
  const wasSetBack = createSetBackWatch(clock);
  /** Until it has succeeded. */
  let mustBringForward = false;

  async function endExpired(now: number): Promise<number> {
    let ended = 0;
    for (;;) {
      const jobs = await findExpiredJobs(database.read, now, expiredMax);
      const settled = await Promise.allSettled(
        jobs.map((job) =>
          settle({
            job,
            ending: job.cancel_requested_at === null ? workerLost : { kind: 'cancelled' },
            messages: [],
            // Unknown, because its process is gone; steps may be left.
            hasSteps: true,
          }),
        ),
      );
      // An attempt that cannot be ended must not keep the others from it.
      for (const one of settled) {
        if (one.status === 'rejected')
          log.error({ err: one.reason }, 'a lost attempt is not ended');
      }
      const lost = jobs.filter((_, i) => {
        const one = settled[i];
        return one?.status === 'fulfilled' && one.value !== null;
      });
      for (const job of lost) {
        log.warn({ job_id: job.id, attempt: job.attempt }, 'an attempt was lost with its process');
      }
      if (lost.length > 0) onLost?.(lost.length);
      ended += lost.length;
      if (lost.length < expiredMax) return ended;
    }
  }

  return {
    async sweep() {
      mustBringForward ||= wasSetBack();
      if (mustBringForward) {
        await database.write((tx) => bringJobsForward(tx, clock.now(), leaseMs));
        mustBringForward = false;
      }
      const expired = await findExpiredJobs(database.read, clock.now(), 1);
      if (!isInGrace() && expired.length > 0) {
        // After the machine was suspended, the leases of this process's own runs look expired.
        await renewOwn();
        await endExpired(clock.now());
      }
      for (const name of jobQueues) {
        // Reading due jobs is useless while enough hints wait, or while none can be sent.
        if (!queue.isConnected() || !queue.isRunningLow(name)) continue;
        const now = clock.now();
        const jobs = await findDueJobs(database.read, name, now - hintRetryMs, dueMax);
        const round = roundOf(now);
        queue.sendHints(
          name,
          jobs.map(({ id, epoch }) => ({
            id,
            generation: hintRetryMs === 0 ? epoch : `${epoch}-${round}`,
            delayMs: 0,
          })),
        );
      }
    },

    endOrphans: () => endExpired(Number.MAX_SAFE_INTEGER),
  };
}
