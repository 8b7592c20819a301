/**
 * Settle: the one way out of a job. One transaction records the end of an attempt: the job,
 * its conversation, the messages, the events, the counts. Only the attempt that still holds the lease
 * settles; a late one changes nothing and gets null. A job whose cancellation was requested ends as
 * cancelled, even when its last attempt completed. A job that waits in the queue is cancelled here too.
 */
import type { Agents } from '../agents/agents.ts';
import type { Journals } from '../agents/journal.ts';
import { createBatch } from '../database/batch.ts';
import type { Database, Transaction } from '../database/database.ts';
import type { JobStatus } from '../database/tables.ts';
import type { Backoff } from '../kernel/backoff.ts';
import type { Clock } from '../kernel/clock.ts';
import { PlatformError } from '../kernel/errors.ts';
import { endOf } from '../kernel/set-back.ts';
import type { Memories } from '../memories/memories.ts';
import type { MemoryChanges } from '../memories/record.ts';
import { type ClaimedJob, holdJobs } from './jobs.store.ts';
import { cancelQueuedJobs, settleJobs } from './settle.store.ts';
import {
  type EffectDeps,
  isOfSchedule,
  isQueuedAgain,
  recordEffects,
  type Settled,
} from './settle-effects.ts';
import {
  type AttemptOutcome,
  cancelledError,
  type JobError,
  nextState,
  withoutRetry,
} from './states.ts';

/** The end of an attempt. */
export interface Settlement extends Pick<Settled, 'messages' | 'answer' | 'answerField'> {
  readonly job: ClaimedJob;
  readonly outcome: AttemptOutcome;
  /** The run's changes to its agent's memories; recorded if this completes the job. */
  readonly memory?: MemoryChanges | undefined;
  /** Milliseconds that the run took, where this process has measured it. */
  readonly tookMs?: number;
  /** Whether it asked a model or called a skill, so that unfinished steps may be recorded. */
  readonly hasSteps?: boolean;
}

export interface Settle {
  /** The job's new status; null when another attempt holds it and this one was ignored. */
  (settlement: Settlement): Promise<JobStatus | null>;
  /** Cancels the queued ones of the jobs in the caller's transaction; how many. */
  cancelQueued(tx: Transaction, ids: readonly string[], error?: JobError): Promise<number>;
}

export interface SettleDeps extends EffectDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly backoff: Backoff;
  readonly agents: Pick<Agents, 'lock'>;
  readonly memories: Pick<Memories, 'keep'>;
  readonly journals: Pick<Journals, 'endAbandonedSteps'>;
}

/** A settlement with what it makes of the job. */
type Decided = Settlement & Pick<Settled, 'from' | 'transition' | 'durationMs'>;

export function createSettle(deps: SettleDeps): Settle {
  const settleOne = createBatch<Settlement, JobStatus | null>(
    deps.database,
    (tx, settlements) => settle(deps, tx, settlements),
    partOfWrite,
  );
  return Object.assign(settleOne, {
    cancelQueued: (tx: Transaction, ids: readonly string[], error?: JobError) =>
      cancelQueued(deps, tx, ids, error),
  });
}

async function settle(
  deps: SettleDeps,
  tx: Transaction,
  settlements: readonly Settlement[],
): Promise<(JobStatus | null)[]> {
  const { clock, memories, journals } = deps;
  const now = clock.now();
  await lockAgents(deps, tx, settlements);
  const decided = await withoutUnwanted(
    deps,
    tx,
    settlements.map((one) => decide(deps, one, now)),
  );
  const settled = await settleAll(tx, decided, now);
  const recorded = settled.filter((one) => one !== null);
  // `lockAgents` has locked their agents before the jobs.
  if (recorded.some(hasMemory)) await memories.keep(tx, recorded.flatMap(memoryOf));
  // Before the messages of the outcome: the steps under way are older.
  const thinking = recorded.filter(hasSteps).sort(byJobId);
  await journals.endAbandonedSteps(tx, thinking.map(endedClaim));
  await recordEffects(deps, tx, recorded, now);
  return settled.map((one) => one?.transition.status ?? null);
}

async function cancelQueued(
  deps: SettleDeps,
  tx: Transaction,
  ids: readonly string[],
  error = cancelledError,
): Promise<number> {
  const now = deps.clock.now();
  const jobs = await cancelQueuedJobs(tx, ids, JSON.stringify(error), now);
  if (jobs.length === 0) return 0;
  const transition = { status: 'cancelled', error } as const;
  const settled = jobs.map(
    (job): Settled => ({ job, from: 'queued', transition, durationMs: 0, messages: [] }),
  );
  await recordEffects(deps, tx, settled, now);
  return jobs.length;
}

function decide({ backoff }: SettleDeps, settlement: Settlement, now: number): Decided {
  const { job, outcome, tookMs } = settlement;
  return {
    ...settlement,
    from: 'active',
    transition: nextState(outcome, job, backoff, now),
    // Never negative, even if the clock was set back.
    durationMs: job.started_at === null ? 0 : endOf(job.started_at, now, tookMs) - job.started_at,
  };
}

/**
 * Locks the agents whose memories this may change, in the order of `memories.keep`, and before the
 * jobs: every transaction locks agents first, then jobs, then counts.
 */
async function lockAgents(
  { agents }: SettleDeps,
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
async function withoutUnwanted(
  { scheduled }: SettleDeps,
  tx: Transaction,
  decided: readonly Decided[],
): Promise<readonly Decided[]> {
  const ids = decided.filter(isOfSchedule).filter(isQueuedAgain).map(idOf);
  if (ids.length === 0) return decided;
  // All of them, so that jobs are locked in one order.
  await holdJobs(tx, decided.map(idOf));
  const unwanted = await scheduled.unwanted(tx, ids);
  return decided.map((one) =>
    unwanted.has(one.job.id) ? { ...one, transition: withoutRetry(one.transition) } : one,
  );
}

/** The i-th result is the recorded settlement of the i-th attempt, or null when it had lost its lease. */
async function settleAll(
  tx: Transaction,
  decided: readonly Decided[],
  now: number,
): Promise<(Decided | null)[]> {
  const settled = await settleJobs(
    tx,
    decided.map((one) => settledRow(one, now)),
  );
  const results: (Decided | null)[] = [];
  for (const [i, one] of decided.entries()) {
    results.push(settled[i] ? one : await settleCancelled(tx, one, now));
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
  const error = 'error' in transition ? transition.error : null;
  return {
    id: job.id,
    epoch: job.epoch,
    status: transition.status,
    output: transition.status === 'completed' ? transition.output : null,
    error: error === null ? null : JSON.stringify(error),
    finished_at: waits ? null : endOf(job.started_at, now, tookMs),
    run_at: waits ? transition.runAt : null,
    due_at: waits ? transition.runAt : null,
    refund: waits ? transition.refund : 0,
    deaths: waits ? transition.unattributedDeaths : 0,
    cancelling: transition.status === 'cancelled' ? 1 : 0,
  };
}

const partOfWrite = ({ memory }: Settlement) => memory?.share ?? 0;
const hasMemory = ({ memory }: Settlement) => memory !== undefined;
const hasSteps = (settlement: Settlement) => settlement.hasSteps === true;
const idOf = ({ job }: Settlement) => job.id;
const byJobId = (a: Settlement, b: Settlement) => (a.job.id < b.job.id ? -1 : 1);

/** The memory changes to record: none, unless the attempt completes the job. */
function memoryOf({ job, memory, transition }: Decided) {
  if (memory === undefined || transition.status !== 'completed') return [];
  const owning = { organizationId: job.organization_id, agentId: job.agent_id };
  return [{ ...owning, acceptedAt: job.created_at, ...memory }];
}

const endedClaim = ({ job, transition }: Decided) => ({
  job,
  isCancelled: transition.status === 'cancelled',
});
