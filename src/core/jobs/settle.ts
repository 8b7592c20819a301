/**
 * Settle: the one way out of a job. One transaction records the end of an attempt: the job,
 * its conversation, the messages, the events, the counts. Only the attempt that still holds the lease
 * settles; a late one changes nothing and gets null. A job whose cancellation was requested ends as
 * cancelled, even when its last attempt completed. A job that is queued or waiting is cancelled here too.
 * A run that waits ends its claim, not its attempt. It has more than 300 lines because every way out of a job is
 * part of one transaction.
 */

import { Batch } from '../../adapters/database/batch.ts';
import type { Transaction } from '../../adapters/database/database.ts';
import type { JobStatus } from '../../adapters/database/tables.ts';
import type { Backoff } from '../../kernel/backoff.ts';
import { PlatformError } from '../../kernel/errors.ts';
import type { Agents } from '../agents/agents.ts';
import type { Context } from '../context/context.ts';
import { endAbandonedSteps } from '../journal/abandoned-steps.ts';
import { abandonWaits } from '../journal/abandoned-waits.ts';
import { listLastTurns } from '../journal/step-queries.ts';
import type { WaitKinds } from '../journal/wait-kinds.ts';
import { listOpenWaits } from '../journal/wait-queries.ts';
import type { Memories } from '../memories/memories.ts';
import type { MemoryChanges } from '../memories/record.ts';
import { findRunsWithoutRetry } from '../scheduled-runs/scheduled-runs.ts';
import { finishedAt } from './completed-job.ts';
import type { WaitEnds } from './end-waits.ts';
import { finishCancellations, listCancellations, lockFamilies } from './families.store.ts';
import {
  cancelDescendants,
  cancelUnclaimed,
  isChild,
  mayHaveSteps,
  mayLeaveDescendants,
  type Unclaimed,
} from './families.ts';
import type { Places } from './gates/places.ts';
import type { NextInConversation } from './in-conversation/next-in-conversation.ts';
import { listReplacedUnbegun, recordReplaced } from './job-keys/job-keys.store.ts';
import { type ClaimedJob, type JobCountChanges, lockJobs, memoryUserOf } from './jobs.store.ts';
import type { RunningJobs } from './runs/running-jobs.ts';
import { recordProgress, settleJobs } from './settle.store.ts';
import {
  isOfSchedule,
  isQueuedAgain,
  publishUnconfirmed,
  recordEffects,
  type Settled,
  type UnconfirmedEnds,
} from './settle-effects.ts';
import {
  type AttemptOutcome,
  cancelledError,
  hasAdvanced,
  idleClaimsMax,
  isFinal,
  isInterruption,
  isRepeatedFailure,
  type JobError,
  nextState,
  type Progress,
  progressAfter,
  replacedError,
  stuckError,
  withoutRetry,
} from './states.ts';
import { skillOf } from './turns/admission.ts';
import { forgetBeginnings, markBegun } from './turns/later.store.ts';
import { wokenAt } from './turns/waiting.store.ts';

/** The end of an attempt. */
export interface Settlement
  extends Pick<Settled, 'messages' | 'answer' | 'answerField' | 'unchanged' | 'tookMs'> {
  readonly job: ClaimedJob;
  readonly outcome: AttemptOutcome;
  /** The run's changes to its agent's memories; recorded if this completes the job. */
  readonly memory?: MemoryChanges | undefined;
  /** Whether the claim has opened the job's journal. Steps of earlier claims are read anyway. */
  readonly openedJournal?: boolean;
  /** The waits, by the number of their step, whose ends the run has not got; of an outcome `waiting`. */
  readonly openWaits?: readonly number[];
}

/** Longest wait between retries of one job. */
const backoffMaxMs = 60 * 60 * 1000;
/** Jobs of which one transaction cancels what is left below them. */
const familiesMax = 100;
/** Transactions of one pass: the sweep, in which hints of due jobs wait for it, makes the next one soon. */
const roundsMax = 5;

/** A settlement with what it makes of the job. */
type Decided = Settlement &
  Pick<Settled, 'from' | 'transition' | 'durationMs'> & {
    /** Of a model's run that was interrupted, or waits. */
    readonly progress?: Progress;
  };

/** The parts of the platform that the end of a job changes. */
interface SettlerParts {
  readonly agents: Agents;
  readonly memories: Memories;
  readonly running: RunningJobs;
  readonly waitEnds: WaitEnds;
  readonly waitKinds: WaitKinds;
  readonly places: Places;
  readonly inConversation: NextInConversation;
}

export class Settler {
  readonly context: Context;
  readonly parts: SettlerParts;
  readonly backoff: Backoff;
  /** Ends whose commit was not confirmed. */
  readonly unconfirmed: UnconfirmedEnds;
  readonly #settlements: Batch<Settlement, JobStatus | null>;

  constructor(context: Context, parts: SettlerParts) {
    this.context = context;
    this.parts = parts;
    this.backoff = { baseMs: context.config.retryBackoffMs, maxMs: backoffMaxMs };
    this.unconfirmed = publishUnconfirmed(context);
    this.#settlements = new Batch(
      context.database,
      (tx, settlements) => settleAll(this, tx, settlements),
      partOfWrite,
    );
  }

  /** The job's new status; null when another attempt holds it and this one was ignored. */
  settle(settlement: Settlement): Promise<JobStatus | null> {
    return this.#settlements.add(settlement);
  }

  /**
   * Cancels the queued and the waiting ones of the jobs in the caller's transaction; how many. Where there are some, it records
   * `changes` of the counts of jobs together with those of the cancellations.
   */
  cancelUnclaimed(
    tx: Transaction,
    ids: readonly string[],
    error: JobError = cancelledError,
    changes: JobCountChanges = [],
  ): Promise<number> {
    return cancelWithDescendants(this, tx, ['queued', 'waiting'], ids, error, changes);
  }

  /**
   * Cancels the queued ones of the jobs alone: those that wait have begun. The others go on, but their rows are
   * locked, so that none is settled before the transaction ends.
   */
  cancelQueued(tx: Transaction, ids: readonly string[]): Promise<number> {
    return cancelWithDescendants(this, tx, ['queued'], ids, cancelledError);
  }

  /**
   * Cancels what is below jobs that have ended or are being cancelled. The caller holds their families, as after
   * `cancelUnclaimed`.
   */
  async cancelBelow(tx: Transaction, ids: readonly string[]): Promise<void> {
    const now = this.context.clock.now();
    const descendants = await cancelDescendants(this, tx, ids, now);
    if (descendants.length > 0) await recordEffects(this, tx, descendants, now);
  }

  /** Cancels jobs that cancellations have left, because they were more than one transaction should change; some a pass. */
  async cancelRest(): Promise<void> {
    const { database } = this.context;
    for (let round = 0; round < roundsMax; round += 1) {
      const ids = await listCancellations(database.read, familiesMax);
      if (ids.length === 0) return;
      await database.write(async (tx) => {
        // As a settlement does: it locks the jobs before it records that some are left.
        await lockFamilies(tx, ids);
        // Before the cancellations, which record again what they leave.
        await finishCancellations(tx, ids);
        await this.cancelBelow(tx, ids);
      });
    }
  }
}

async function settleAll(
  settler: Settler,
  tx: Transaction,
  settlements: readonly Settlement[],
): Promise<(JobStatus | null)[]> {
  const { context, parts } = settler;
  const now = context.clock.now();
  await lockAgents(settler, tx, settlements);
  const outcomes = settlements.map((one) => decide(settler, one, now));
  // Before any other lock on jobs, so that all are locked in one order.
  if (outcomes.some(changesFamily)) await lockFamilies(tx, outcomes.map(idOf));
  // A job that has completed ends so, whatever else is on record of it.
  const decided = outcomes.every(isCompleted)
    ? outcomes
    : await withRecords(settler, tx, outcomes, now);
  const settled = await recordEnds(tx, decided, now);
  const recorded = settled.filter((one) => one !== null);
  await recordWhetherBegun(tx, recorded);
  const refusals = recorded.flatMap(refusalOf);
  if (refusals.length > 0) await parts.places.refused(tx, refusals);
  // `lockAgents` has locked their agents before the jobs.
  if (recorded.some(hasMemory)) await parts.memories.keep(tx, recorded.flatMap(memoryOf));
  // Before the messages of the outcome: the steps under way are older.
  const withSteps = recorded.filter(mayHaveSteps).sort(byJobId);
  if (withSteps.length > 0) await endSteps(settler, tx, withSteps);
  const parents = recorded.filter(mayLeaveDescendants).map(idOf);
  const effects =
    parents.length === 0
      ? recorded
      : [...recorded, ...(await cancelDescendants(settler, tx, parents, now))];
  await recordEffects(settler, tx, effects, now);
  return settled.map((one) => one?.transition.status ?? null);
}

/**
 * Only a run that began blocks expiry and replacement. Recorded here for claims handed back, which no attempt counts, and
 * after which a later claim may not begin.
 */
async function recordWhetherBegun(tx: Transaction, recorded: readonly Decided[]): Promise<void> {
  const [begun, unbegun]: [string[], string[]] = [[], []];
  for (const { job, outcome, transition } of recorded) {
    if (job.expires_at === null && job.job_key === null) continue;
    // A second attempt follows only one that has begun, and its beginning is never forgotten.
    if (job.attempt > 1 || isFinal(transition.status)) continue;
    if (hasNotBegun(outcome)) unbegun.push(job.id);
    else begun.push(job.id);
  }
  if (unbegun.length > 0) await forgetBeginnings(tx, unbegun);
  if (begun.length > 0) await markBegun(tx, begun);
}

/** Whether a claim ended before the code of its run began. */
function hasNotBegun({ kind }: AttemptOutcome): boolean {
  return kind === 'unbegun' || kind === 'deferred';
}

async function cancelWithDescendants(
  settler: Settler,
  tx: Transaction,
  statuses: readonly Unclaimed[],
  ids: readonly string[],
  error: JobError,
  changes: JobCountChanges = [],
): Promise<number> {
  const now = settler.context.clock.now();
  await lockFamilies(tx, ids);
  const cancelled = await cancelUnclaimed(settler, tx, statuses, ids, error, now);
  if (cancelled.length === 0) return 0;
  const parents = cancelled.filter(mayLeaveDescendants).map(idOf);
  const descendants = await cancelDescendants(settler, tx, parents, now);
  await recordEffects(settler, tx, [...cancelled, ...descendants], now, changes);
  return cancelled.length;
}

function decide({ backoff }: Settler, settlement: Settlement, now: number): Decided {
  const { job, outcome, tookMs } = settlement;
  return {
    ...settlement,
    from: 'active',
    transition: nextState(outcome, job, backoff, now),
    durationMs: job.active_ms + claimMs(job, now, tookMs),
  };
}

/** Milliseconds of a claim; never negative, even if the clock was set back. */
function claimMs(job: ClaimedJob, now: number, tookMs?: number): number {
  const beganAt = job.resumed_at ?? job.started_at;
  return beganAt === null ? 0 : finishedAt(job, now, tookMs) - beganAt;
}

/** Ends the steps that were under way, and those that wait unless the job goes on. */
async function endSteps(
  { context, parts }: Settler,
  tx: Transaction,
  recorded: readonly Decided[],
): Promise<void> {
  const interrupted = recorded.filter(({ transition }) => transition.status !== 'waiting');
  const now = context.clock.now();
  await endAbandonedSteps(tx, interrupted.map(endedClaim), now);
  const ended = recorded.filter(({ transition }) => isFinal(transition.status));
  if (ended.length === 0) return;
  await abandonWaits(tx, parts.waitKinds, ended.map(abandonedJob), now);
}

/** The transitions that the records of interrupted and unfinished jobs allow. */
async function withRecords(
  settler: Settler,
  tx: Transaction,
  decided: readonly Decided[],
  now: number,
): Promise<readonly Decided[]> {
  const advanced = await withProgress(settler, tx, decided, now);
  const allowed = await withoutReplaced(tx, await withoutEndedSchedules(tx, advanced));
  return withDueWaits(tx, allowed);
}

/** A run that waits is due when the first of its waits is, or at once if one has ended meanwhile. */
async function withDueWaits(
  tx: Transaction,
  decided: readonly Decided[],
): Promise<readonly Decided[]> {
  const ids = decided.filter(isWaiting).map(idOf);
  if (ids.length === 0) return decided;
  // All of them, so that jobs are locked in one order; before their waits, which end under this lock.
  await lockJobs(tx, decided.map(idOf));
  const waits = Map.groupBy(await listOpenWaits(tx, { ids }), ({ job_id }) => job_id);
  return decided.map((one) => {
    if (one.transition.status !== 'waiting') return one;
    const open = waits.get(one.job.id) ?? [];
    const numbers = new Set(open.map(({ n }) => n));
    const hasUndeliveredEnd =
      open.length === 0 || one.openWaits?.some((n) => !numbers.has(n)) === true;
    if (hasUndeliveredEnd) return one;
    const dueAt = open.reduce((least, { due_at }) => Math.min(least, due_at ?? 0), Infinity);
    return { ...one, transition: { ...one.transition, dueAt } };
  });
}

/**
 * The claims of models' runs: attempts begin anew where a turn was recorded since the claim and its process was lost, or it
 * failed and has advanced, and too many interrupted claims in a row without a turn end the job. A claim that ended otherwise resets the count
 * if it recorded a turn, or waits.
 */
async function withProgress(
  settler: Settler,
  tx: Transaction,
  decided: readonly Decided[],
  now: number,
): Promise<readonly Decided[]> {
  const counted = decided.filter(
    (one) =>
      mayHaveSteps(one) &&
      (isInterruption(one.outcome) ||
        isRepeatedFailure(one.outcome, one.job) ||
        hasIdleClaims(one)),
  );
  if (counted.length === 0) return decided;
  // All of them, so that jobs are locked in one order.
  await lockJobs(tx, decided.map(idOf));
  const turns = await listLastTurns(tx, { ids: counted.map(idOf) });
  const turnsOf = new Map(turns.map((of) => [of.job_id, of]));
  const progressed = new Map<Decided, Decided>();
  for (const one of counted) {
    const recorded = turnsOf.get(one.job.id);
    const hasNewTurn = Number(recorded?.epoch) === one.job.epoch;
    const counts = isInterruption(one.outcome)
      ? recorded !== undefined
      : recorded !== undefined &&
        isRepeatedFailure(one.outcome, one.job) &&
        hasAdvanced(recorded, one.job.epoch);
    if (counts) {
      const progress = progressAfter(one.outcome, one.job, hasNewTurn);
      const counting = { ...one, job: { ...one.job, ...progress }, progress };
      progressed.set(one, withBounds(settler, counting, now));
    } else if (!isInterruption(one.outcome) && (hasNewTurn || isWaiting(one))) {
      progressed.set(one, { ...one, progress: { ...one.job, idle_claims: 0 } });
    }
  }
  await recordProgress(tx, [...progressed.values()].map(progressRow));
  return decided.map((one) => progressed.get(one) ?? one);
}

/** Whether earlier claims of a job that goes on were interrupted without a new turn. */
function hasIdleClaims({ job, transition }: Decided): boolean {
  return job.idle_claims > 0 && !isFinal(transition.status);
}

/** The transition of a model's run with the attempts that it has left. */
function withBounds({ backoff }: Settler, one: Decided, now: number): Decided {
  if (one.job.idle_claims >= idleClaimsMax)
    return { ...one, transition: { status: 'failed', error: stuckError } };
  return { ...one, transition: nextState(one.outcome, one.job, backoff, now) };
}

/**
 * Locks the agents whose memories this may change, in the order of `memories.keep`, and before the
 * jobs: every transaction locks agents first, then jobs, then counts.
 */
async function lockAgents(
  { parts: { agents } }: Settler,
  tx: Transaction,
  settlements: readonly Settlement[],
): Promise<void> {
  const keeping = settlements.filter((one) => hasMemory(one) && one.outcome.kind === 'completed');
  const byKey = new Map(keeping.map(({ job }) => [`${job.organization_id}/${job.agent_id}`, job]));
  for (const [, job] of [...byKey].sort(([a], [b]) => (a < b ? -1 : 1))) {
    try {
      await agents.lock(tx, job.organization_id, job.agent_id);
    } catch (error) {
      // A deleted agent has no memories.
      if (!(error instanceof PlatformError && error.code === 'not_found')) throw error;
    }
  }
}

/** A run of a deleted or disabled schedule is not tried again. */
async function withoutEndedSchedules(
  tx: Transaction,
  decided: readonly Decided[],
): Promise<readonly Decided[]> {
  const ids = decided.filter(isOfSchedule).filter(isQueuedAgain).map(idOf);
  if (ids.length === 0) return decided;
  // All of them, so that jobs are locked in one order.
  await lockJobs(tx, decided.map(idOf));
  const withoutRetries = await findRunsWithoutRetry(tx, ids);
  return decided.map((one) =>
    withoutRetries.has(one.job.id) ? { ...one, transition: withoutRetry(one.transition) } : one,
  );
}

/** A job that goes back to the queue before it has begun does not run beside a later job of its key, which took its place. */
async function withoutReplaced(
  tx: Transaction,
  decided: readonly Decided[],
): Promise<readonly Decided[]> {
  const returned = decided.filter(
    (one) => one.job.job_key !== null && isQueuedAgain(one) && hasNotBegun(one.outcome),
  );
  if (returned.length === 0) return decided;
  // All of them, in one order; the acceptance of a job of the key locks this one, too, so that it is decided before or after.
  await lockJobs(tx, decided.map(idOf));
  const epochs = new Map(returned.map(({ job }) => [job.id, job.epoch]));
  const found = await listReplacedUnbegun(tx, { ids: [...epochs.keys()] });
  const rows = found.filter(({ id, epoch }) => epochs.get(id) === epoch);
  if (rows.length === 0) return decided;
  await recordReplaced(
    tx,
    rows.map(({ id, replaced_by }) => ({ id, replaced_by })),
  );
  const replaced = new Set(rows.map(({ id }) => id));
  const transition = { status: 'cancelled', error: replacedError } as const;
  return decided.map((one) => (replaced.has(one.job.id) ? { ...one, transition } : one));
}

/** The i-th result is the recorded settlement of the i-th attempt, or null when it had lost its lease. */
async function recordEnds(
  tx: Transaction,
  decided: readonly Decided[],
  now: number,
): Promise<(Decided | null)[]> {
  const settled = await settleJobs(
    tx,
    decided.map((one) => settledRow(one, now)),
  );
  const results: (Decided | null)[] = [];
  for (const one of decided) {
    const isSettled = settled[results.length] === true;
    results.push(isSettled ? one : await settleCancelled(tx, one, now));
  }
  return results;
}

/** Settles as cancelled an attempt that could not be settled, if cancellation was requested; else null. */
async function settleCancelled(
  tx: Transaction,
  one: Decided,
  now: number,
): Promise<Decided | null> {
  if (one.transition.status === 'cancelled') return null;
  const transition = { status: 'cancelled', error: cancelledError } as const;
  const cancelled = { ...one, transition };
  const [isSettled] = await settleJobs(tx, [settledRow(cancelled, now)]);
  return isSettled ? cancelled : null;
}

function settledRow({ job, transition, tookMs }: Decided, now: number) {
  const waits = transition.status === 'queued';
  const dueAt = transition.status === 'waiting' ? waitingUntil(transition.dueAt, now) : null;
  const error = 'error' in transition ? transition.error : null;
  return {
    id: job.id,
    epoch: job.epoch,
    status: transition.status,
    output: transition.status === 'completed' ? transition.output : null,
    error: error === null ? null : JSON.stringify(error),
    finished_at: isFinal(transition.status) ? finishedAt(job, now, tookMs) : null,
    run_at: waits ? transition.runAt : null,
    due_at: waits ? transition.runAt : dueAt,
    refund: waits ? transition.refund : 0,
    deaths: waits ? transition.unattributedDeaths : 0,
    active_ms: dueAt === null ? 0 : claimMs(job, now, tookMs),
    cancelling: transition.status === 'cancelled' ? 1 : 0,
  };
}

const waitingUntil = (dueAt: number, now: number) => (dueAt <= now ? wokenAt(now) : dueAt);
const partOfWrite = ({ memory }: Settlement) => memory?.share ?? 0;
const hasMemory = ({ memory }: Settlement) => memory !== undefined;
const isCompleted = ({ transition }: Decided) => transition.status === 'completed';
const isWaiting = ({ transition }: Decided) => transition.status === 'waiting';
const progressRow = ({ job, progress }: Decided) => ({
  id: job.id,
  epoch: job.epoch,
  ...(progress as Progress),
});

/** Of an attempt that a service has refused for some time: its skill, and for how long. */
const refusalOf = ({ job, outcome }: Decided) =>
  'retryAfterMs' in outcome && outcome.retryAfterMs !== undefined
    ? [{ skill: skillOf(job), ms: outcome.retryAfterMs }]
    : [];

const idOf = ({ job }: Pick<Settled, 'job'>) => job.id;
const byJobId = (a: Settlement, b: Settlement) => (a.job.id < b.job.id ? -1 : 1);

/** Whether the end of an attempt may change the job's parent, or the jobs below it. */
function changesFamily(one: Decided): boolean {
  if (isChild(one) && isFinal(one.transition.status)) return true;
  // `withProgress` may end it.
  if (isInterruption(one.outcome) && one.job.idle_claims + 1 >= idleClaimsMax) return true;
  // One that is to be tried again may be without a retry, or cancelled.
  return one.transition.status === 'queued'
    ? mayHaveSteps(one) && isOfSchedule(one)
    : mayLeaveDescendants(one);
}

/** The memory changes to record: none, unless the attempt completes the job. */
function memoryOf({ job, memory, transition }: Decided) {
  if (memory === undefined || transition.status !== 'completed') return [];
  const owning = { organizationId: job.organization_id, agentId: job.agent_id };
  return [{ ...owning, userId: memoryUserOf(job), acceptedAt: job.created_at, ...memory }];
}

const abandonedJob = ({ job, transition }: Pick<Settled, 'job' | 'transition'>) => ({
  id: job.id,
  isCancelled: transition.status === 'cancelled',
});

const endedClaim = ({ job, transition }: Decided) => ({
  job,
  isCancelled: transition.status === 'cancelled',
});
