/**
 * Recover: the sweep that makes a lost hint harmless. It sends a hint for every organization that has due jobs, ends
 * attempts whose lease has expired because their process is gone, sees to jobs that begin later (`later.ts`), and goes on
 * with cancellations of many jobs. It runs at each start and
 * every second, in every mode, so recovery after a crash is the same code as everyday work.
 */
import type { Handle, Transaction } from '../../../adapters/database/database.ts';
import { sweepNumber } from '../../../adapters/queue/queue.ts';
import type { Context } from '../../context/context.ts';
import { LeaseSweep } from '../../leases/lease-sweep.ts';
import type { Places } from '../gates/places.ts';
import { endLeftDelivered } from '../in-conversation/left-delivered.ts';
import { bringJobsForward, findExpiredJobs } from '../leases.store.ts';
import { hintOf, jobQueues } from '../queues.ts';
import type { RunningJobs } from '../runs/running-jobs.ts';
import type { Settler } from '../settle.ts';
import { type AttemptOutcome, isLastAttempt } from '../states.ts';
import { LaterJobs } from './later.ts';
import { findDueOrganizations } from './turns.store.ts';

/** Groups of jobs of one queue that one sweep reads; the next one goes on behind them. */
const groupsMax = 2_000;

export type ExpiredJob = Awaited<ReturnType<typeof findExpiredJobs>>[number];

const lost: AttemptOutcome = {
  kind: 'failed',
  code: 'worker_lost',
  message: 'The process that ran this attempt has gone',
  retryable: true,
};

export interface RecoveryTimes {
  /** See `LeaseSweep`. */
  readonly graceMs?: number;
}

export class JobRecovery extends LeaseSweep<ExpiredJob> {
  readonly #context: Context;
  readonly #settler: Settler;
  readonly #running: RunningJobs;
  readonly #later: LaterJobs;
  readonly #gates: Places;
  /** By queue, the organization behind which the next sweep goes on. */
  readonly #places = new Map<string, string>();

  constructor(
    context: Context,
    {
      settler,
      running,
      places,
    }: { readonly settler: Settler; readonly running: RunningJobs; readonly places: Places },
    times: RecoveryTimes = {},
  ) {
    super(context, times.graceMs);
    this.#context = context;
    this.#settler = settler;
    this.#running = running;
    this.#gates = places;
    this.#later = new LaterJobs(context, settler);
  }

  protected override findExpired(db: Handle, leasedUntil: number, limit: number) {
    return findExpiredJobs(db, leasedUntil, limit);
  }

  protected override settleLost(job: ExpiredJob): Promise<unknown> {
    return settleClaim(this.#settler, job, hasNotBegun(job) ? { kind: 'unbegun' } : lost);
  }

  protected override bringForward(tx: Transaction, now: number): Promise<void> {
    return bringJobsForward(tx, now, this.#context.config.jobLeaseMs);
  }

  protected override reportLost(jobs: readonly ExpiredJob[]): void {
    const { log } = this.#context;
    const lost = jobs.filter((job) => !hasNotBegun(job));
    for (const job of jobs) {
      if (hasNotBegun(job)) {
        const message = 'a claim whose run had not begun was given back: its process has gone';
        log.info({ job_id: job.id }, message);
      } else {
        log.warn({ job_id: job.id, attempt: job.attempt }, 'an attempt was lost with its process');
      }
    }
    if (lost.length > 0) this.#context.observers.lost(lost);
  }

  protected override reportError(err: unknown, { id }: ExpiredJob): void {
    this.#context.log.error({ err, job_id: id }, 'a lost attempt is not ended');
  }

  protected override renewOwn(): Promise<void> {
    return this.#running.renewLeases();
  }

  protected override further() {
    return [
      () => this.#later.expire(),
      () => this.#sendDueHints(),
      () => this.#later.announce(),
      () => this.#gates.sweep(),
      () => this.#settler.cancelRest(),
      () => this.#settler.parts.inConversation.sweep(),
      () => endLeftDelivered(this.#settler),
    ];
  }

  /** Sends hints for the organizations of which jobs are due. */
  async #sendDueHints(): Promise<void> {
    const { database, queue, clock } = this.#context;
    for (const name of jobQueues) {
      if (!queue.isConnected()) continue;
      const now = clock.now();
      const after = this.#places.get(name) ?? '';
      const options = { after, dueBy: now, limit: groupsMax };
      const { due, next } = await findDueOrganizations(database.read, name, options);
      this.#places.set(name, next);
      const round = sweepNumber(now);
      queue.sendHints(
        name,
        due.map((job) => hintOf(job, `${job.epoch}-${round}`)),
      );
    }
  }
}

/** Gives back a claim whose code has not begun. */
export function giveBackUnbegun(settler: Settler, job: ExpiredJob) {
  return settleClaim(settler, job, { kind: 'unbegun' });
}

function settleClaim(settler: Settler, job: ExpiredJob, outcome: AttemptOutcome) {
  return settler.settle({
    job,
    outcome: job.cancel_requested_at === null ? outcome : { kind: 'cancelled' },
    messages: [],
    // Unknown, because its process is gone; steps may be left.
    openedJournal: true,
  });
}

/** Whether it is known that the code of a claim has not begun. Only a last attempt records that it begins. */
function hasNotBegun(job: ExpiredJob): boolean {
  return isLastAttempt(job) && job.begun === -job.epoch;
}
