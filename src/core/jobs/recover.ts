/**
 * Recover: the sweep that makes a lost hint harmless. It sends hints for every job that is due, ends
 * attempts whose lease has expired because their process is gone, and goes on with cancellations of many jobs. It runs at each start and
 * every second, in every mode, so recovery after a crash is the same code as everyday work.
 */
import type { Database, Handle } from '../../adapters/database/database.ts';
import { type Queue, roundOf } from '../../adapters/queue/queue.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/log.ts';
import { createLeaseSweep, type LeaseSweep } from '../leases/lease-sweep.ts';
import { type DuePlace, findDueJobs, findWaitingAfter, firstPlace } from './admission.store.ts';
import { bringJobsForward, findExpiredJobs } from './leases.store.ts';
import { hintOf, jobQueues } from './queues.ts';
import type { Settle } from './settle.ts';
import { type AttemptOutcome, isLastAttempt } from './states.ts';

/** Due jobs of a queue for which one sweep sends hints, queued ones and waiting ones each. */
const dueMax = 20_000;
/** The same of waiting jobs while the queue has enough hints. The next sweep goes on behind them. */
const waitingMax = 1_000;

type ExpiredJob = Awaited<ReturnType<typeof findExpiredJobs>>[number];

const lost: AttemptOutcome = {
  kind: 'failed',
  code: 'worker_lost',
  message: 'The process that ran this attempt has gone',
  retryable: true,
};

export interface RecoverDeps {
  readonly base: {
    readonly database: Database;
    readonly queue: Queue;
    readonly clock: Clock;
    readonly log: Logger;
  };
  readonly settle: Settle;
  /** Renews the leases of this process's own runs. */
  renewOwn(): Promise<void>;
  readonly times: {
    /** How long leases are. */
    readonly leaseMs: number;
    /**
     * How long the sweep leaves a due job to its first hint. For a job that has been due for longer, it
     * sends a new hint every few seconds, because the process that took an earlier one may have died.
     */
    readonly hintRetryMs?: number;
    /** See `createLeaseSweep`. */
    readonly graceMs?: number;
  };
  /** Called with the number of attempts that were lost with their processes. */
  onLost?(attempts: number): void;
}

/** See `createLeaseSweep`. */
export function createRecovery(deps: RecoverDeps): LeaseSweep {
  const { settle, renewOwn } = deps;
  const { database, clock, log } = deps.base;
  const { leaseMs, graceMs } = deps.times;
  const places = new Map<string, DuePlace>();
  return createLeaseSweep<ExpiredJob>({
    database,
    clock,
    graceMs,
    rows: {
      findExpired: findExpiredJobs,
      settleLost: (job) => settleLost(deps, job),
      bringForward: (tx, now) => bringJobsForward(tx, now, leaseMs),
      onLost: (jobs) => noteLost(deps, jobs),
      onError: (err, { id }) => log.error({ err, job_id: id }, 'a lost attempt is not ended'),
      renewOwn,
    },
    further: [() => sendDueHints(deps, places), () => settle.cancelRest()],
  });
}

function settleLost({ settle }: RecoverDeps, job: ExpiredJob): ReturnType<Settle> {
  return settleClaim(settle, job, hasNotBegun(job) ? { kind: 'unbegun' } : lost);
}

/** Gives back a claim whose code has not begun. */
export function giveBackUnbegun(settle: Settle, job: ExpiredJob): ReturnType<Settle> {
  return settleClaim(settle, job, { kind: 'unbegun' });
}

function settleClaim(settle: Settle, job: ExpiredJob, outcome: AttemptOutcome) {
  return settle({
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

function noteLost({ base: { log }, onLost }: RecoverDeps, jobs: readonly ExpiredJob[]): void {
  let lost = 0;
  for (const job of jobs) {
    if (hasNotBegun(job)) {
      const message = 'a claim whose run had not begun was given back: its process has gone';
      log.info({ job_id: job.id }, message);
    } else {
      lost += 1;
      log.warn({ job_id: job.id, attempt: job.attempt }, 'an attempt was lost with its process');
    }
  }
  if (lost > 0) onLost?.(lost);
}

/** Sends hints for the jobs that are due. `places`: by queue, how far the waiting ones were read. */
async function sendDueHints(
  { base: { database, queue, clock }, times: { hintRetryMs = 0 } }: RecoverDeps,
  places: Map<string, DuePlace>,
): Promise<void> {
  for (const name of jobQueues) {
    if (!queue.isConnected()) continue;
    const now = clock.now();
    // Queued jobs had a hint when they were accepted, so reading them is useless while enough hints wait.
    const isLow = queue.isRunningLow(name);
    const due = isLow
      ? await findDueJobs(database.read, 'queued', name, now - hintRetryMs, dueMax)
      : [];
    // Most waiting ones had none, because their deadline was too far away.
    const resumed = isLow
      ? await findDueJobs(database.read, 'waiting', name, now, dueMax)
      : await nextWaiting(database.read, name, places, now);
    const round = roundOf(now);
    queue.sendHints(
      name,
      [...due, ...resumed].map((job) =>
        hintOf(job, hintRetryMs === 0 ? job.epoch : `${job.epoch}-${round}`),
      ),
    );
  }
}

/**
 * Waiting jobs while the queue has enough hints, which may all be of one organization, as the longest-due jobs may be: so
 * each sweep reads those behind the last, and a job of another organization has its turn however many there are.
 */
async function nextWaiting(
  db: Handle,
  name: (typeof jobQueues)[number],
  places: Map<string, DuePlace>,
  now: number,
) {
  const after = places.get(name) ?? firstPlace;
  const jobs = await findWaitingAfter(db, name, after, now, waitingMax);
  const last = jobs.at(-1);
  const isAll = jobs.length < waitingMax || last === undefined;
  places.set(name, isAll ? firstPlace : { due_at: Number(last.due_at), id: last.id });
  return jobs;
}
