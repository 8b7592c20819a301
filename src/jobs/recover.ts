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
import { findDueJobs } from './admission.store.ts';
import { bringJobsForward, findExpiredJobs } from './leases.store.ts';
import { jobQueues } from './queues.ts';
import type { Settle } from './settle.ts';
import type { AttemptOutcome } from './states.ts';

/** Due jobs of a queue for which one sweep sends hints. */
const dueMax = 20_000;
/** Lost attempts that are ended together. */
const expiredMax = 500;

const lost: AttemptOutcome = {
  kind: 'failed',
  code: 'worker_lost',
  message: 'The process that ran this attempt has gone',
  retryable: true,
};

export interface RecoverDeps {
  readonly database: Database;
  readonly queue: Queue;
  readonly settle: Settle;
  readonly clock: Clock;
  readonly log: Logger;
  /** Renews the leases of this process's own runs. */
  renewOwn(): Promise<void>;
  /** How long leases are. */
  readonly leaseMs: number;
  /**
   * How long the sweep leaves a due job to its first hint. For a job that has been due for longer, it
   * sends a new hint every few seconds, because the process that took an earlier one may have died.
   */
  readonly hintRetryMs?: number;
  /** After a stall: how long workers may still renew leases that have expired meanwhile. */
  readonly graceMs?: number;
  /** Called with the number of attempts that were lost with their processes. */
  onLost?(attempts: number): void;
}

export interface Recovery {
  /** One pass. */
  sweep(): Promise<void>;
  /**
   * Ends every attempt at once, without regard to its lease: for the start of an embedded platform,
   * when no process can still be running an attempt.
   */
  endOrphans(): Promise<number>;
}

interface Recovering extends RecoverDeps {
  isInGrace(): boolean;
  wasSetBack(): boolean;
  /** Whether the clock was set back and the jobs were not yet brought forward. */
  mustBringForward: boolean;
}

export function createRecovery(deps: RecoverDeps): Recovery {
  const recovering: Recovering = {
    ...deps,
    isInGrace: createStallDetector(deps.clock, deps.graceMs ?? 0),
    wasSetBack: createSetBackWatch(deps.clock),
    mustBringForward: false,
  };
  return {
    sweep: () => sweep(recovering),
    endOrphans: () => endExpired(recovering, Number.MAX_SAFE_INTEGER),
  };
}

async function sweep(recovering: Recovering): Promise<void> {
  const { database, clock, renewOwn, isInGrace } = recovering;
  await bringForward(recovering);
  const expired = await findExpiredJobs(database.read, clock.now(), 1);
  if (!isInGrace() && expired.length > 0) {
    // After the machine was suspended, the leases of this process's own runs look expired.
    await renewOwn();
    await endExpired(recovering, clock.now());
  }
  await sendDueHints(recovering);
}

/** After the clock was set back: without this, jobs would wait as much longer as it was set back. */
async function bringForward(recovering: Recovering): Promise<void> {
  const { database, clock, leaseMs } = recovering;
  recovering.mustBringForward ||= recovering.wasSetBack();
  if (!recovering.mustBringForward) return;
  await database.write((tx) => bringJobsForward(tx, clock.now(), leaseMs));
  recovering.mustBringForward = false;
}

/** Ends the attempts whose lease had ended at `leasedUntil`; how many. */
async function endExpired(recovering: Recovering, leasedUntil: number): Promise<number> {
  const { database, settle, log, onLost } = recovering;
  let ended = 0;
  for (;;) {
    const jobs = await findExpiredJobs(database.read, leasedUntil, expiredMax);
    const settled = await Promise.allSettled(
      jobs.map((job) =>
        settle({
          job,
          outcome: job.cancel_requested_at === null ? lost : { kind: 'cancelled' },
          messages: [],
          // Unknown, because its process is gone; steps may be left.
          hasSteps: true,
        }),
      ),
    );
    let count = 0;
    for (const [i, one] of settled.entries()) {
      const { id, attempt } = jobs[i] as (typeof jobs)[number];
      if (one.status === 'rejected') {
        // An attempt that cannot be ended must not keep the others from it.
        log.error({ err: one.reason, job_id: id }, 'a lost attempt is not ended');
      } else if (one.value !== null) {
        log.warn({ job_id: id, attempt }, 'an attempt was lost with its process');
        count += 1;
      }
    }
    if (count > 0) onLost?.(count);
    ended += count;
    if (count < expiredMax) return ended;
  }
}

/** Sends hints for the jobs that are due. */
async function sendDueHints({
  database,
  queue,
  clock,
  hintRetryMs = 0,
}: Recovering): Promise<void> {
  for (const name of jobQueues) {
    // Reading due jobs is useless while enough hints wait, or while none can be sent.
    if (!queue.isConnected() || !queue.isRunningLow(name)) continue;
    const now = clock.now();
    const due = await findDueJobs(database.read, name, now - hintRetryMs, dueMax);
    const round = roundOf(now);
    queue.sendHints(
      name,
      due.map(({ id, epoch }) => ({
        id,
        generation: hintRetryMs === 0 ? epoch : `${epoch}-${round}`,
        delayMs: 0,
      })),
    );
  }
}
