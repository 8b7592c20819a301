/**
 * Perform: turns a hint into a claim (attempt charged, lease taken), the claim into a run in an
 * executor, and the run's outcome into an ending to settle. It holds a lease for each run and stops
 * a run whose lease it has lost. It never trusts a hint, and never runs skill code in this process.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { createBatch } from '../database/batch.ts';
import type { Database } from '../database/database.ts';
import type { JobStatus } from '../database/tables.ts';
import type { RunHandle, RunOutcome } from '../executors/run.ts';
import type { Clock } from '../kernel/clock.ts';
import { isUnavailable } from '../kernel/errors.ts';
import { continueAfter } from '../kernel/ids.ts';
import type { Logger } from '../kernel/log.ts';
import type { YieldSlot } from '../queue/queue.ts';
import { type SkillRegistry, skillKey } from '../skills/registry.ts';
import { queueOf } from './accept.ts';
import type { JobFeed } from './feed.ts';
import {
  type ClaimedJob,
  changeJobCounts,
  claimJobs,
  findCancelling,
  renewLeases,
} from './jobs.store.ts';
import type { StartRun } from './run.ts';
import type { Settle, Settlement } from './settle.ts';
import type { Ending } from './states.ts';
import { activeEvent } from './status-events.ts';

/** Unattributed executor deaths after which a job runs with no neighbour. */
const deathsBeforeAlone = 2;
/** Delay of a job that goes back to the queue because only other processes have loaded its skill. */
const elsewhereMs = 2_000;
/** The same when no live process has loaded the skill. */
const absentAgainMs = 5_000;
/** Wait before a settlement is tried again. */
const settleAgainMs = 500;

interface Running {
  readonly job: ClaimedJob;
  readonly handle: RunHandle;
  /** Why it was aborted; decides how it ends. */
  stopped: 'cancelled' | 'handed back' | 'lease lost' | null;
}

export interface Performer {
  /** Claims and runs the job of a hint; resolves when it is settled, or at once when it cannot be claimed. */
  perform(jobId: string): Promise<void>;
  /** Runs a job that was claimed when it was accepted; resolves when it is settled. */
  begin(job: ClaimedJob): Promise<void>;
  /** Aborts the run of a job here, if there is one. */
  cancel(jobId: string): void;
  /** Renews all leases; aborts the runs that have lost theirs or are to be cancelled. */
  renew(): Promise<void>;
  /** Aborts the runs whose cancellation another process recorded, in case its message was lost. */
  findCancelled(): Promise<void>;
  running(): number;
  /** Aborts all runs; each job goes back to the queue and its attempt is not charged. */
  handBack(): void;
}

export function createPerformer(parts: {
  database: Database;
  skills: Pick<SkillRegistry, 'definition' | 'goneSince' | 'refresh'>;
  /** Whether this process can run a skill, named `category/version/name`. */
  isLoaded?: (skill: string) => boolean;
  startRun: StartRun;
  settle: Settle;
  feed: JobFeed;
  clock: Clock;
  log: Logger;
  leaseMs: number;
  writer: string;
  /** The clocks of two processes may differ by this much: a row that is due within it is due now. */
  clockSkewMs?: number;
  /** How long a job waits for a skill that no live process has: its processes may be restarting. */
  absentMs?: number;
  /** Yields the slot of a job to another while its outcome is being recorded. */
  yieldSlot?: YieldSlot;
  /** Called at each claim of a job from a queue. */
  onClaim?: () => void;
  /** Called for each job that begins here, from a queue or when it was accepted. */
  onBegin?: () => void;
}): Performer {
  const {
    database,
    skills,
    isLoaded = () => true,
    startRun,
    settle,
    feed,
    clock,
    log,
    leaseMs,
    writer,
  } = parts;
  const { clockSkewMs = 0, absentMs = 0, yieldSlot, onClaim, onBegin } = parts;
  const running = new Map<string, Running>();
  /** Jobs being claimed, and whether they are to be cancelled as soon as they run. */
  const starting = new Map<string, { isCancelled: boolean }>();
  let isClosed = false;

  const claim = createBatch<string, ClaimedJob | null>(database, async (tx, ids) => {
    const now = clock.now();
    const claimed = await claimJobs(tx, ids, now, now + leaseMs, now + clockSkewMs);
    await changeJobCounts(
      tx,
      writer,
      claimed.map((kind) => ({ kind, from: 'queued', to: 'active' })),
    );
    for (const { last_message_id } of claimed) {
      if (last_message_id !== null) continueAfter(last_message_id);
    }
    const byId = new Map(claimed.map((job) => [job.id, job]));
    // Of two hints for one job in one batch, the first gets the claim and the second null.
    return ids.map((id) => {
      const job = byId.get(id) ?? null;
      byId.delete(id);
      return job;
    });
  });

  function begin(job: ClaimedJob): Promise<void> {
    onBegin?.();
    if (feed.hasListeners(job.id)) feed.publish(job.id, activeEvent(job));
    return run(job);
  }

  async function run(job: ClaimedJob): Promise<void> {
    const skill = definitionOf(job);
    if (skill === undefined || !isLoaded(nameOf(job))) {
      await finish({ job, stopped: null }, await withoutSkill(job), { messages: [] });
      return;
    }
    const attempt = startRun(job, {
      timeoutMs: skill.timeoutMs,
      alone: job.deaths >= deathsBeforeAlone,
    });
    const entry: Running = { job, handle: attempt.handle, stopped: null };
    // A run of an earlier claim is here only if its lease has expired without its notice.
    const earlier = running.get(job.id);
    if (earlier !== undefined) stop(earlier, 'lease lost');
    running.set(job.id, entry);
    if (starting.get(job.id)?.isCancelled) stop(entry, 'cancelled');
    starting.delete(job.id);
    let resume: (() => void) | undefined;
    const beganAt = clock.monotonic();
    try {
      const outcome = await attempt.handle.outcome;
      const ending = endingOf(outcome, entry, attempt.thinking?.retryAfterMs ?? null);
      await attempt.ended();
      // From here on the run only waits for the database, so another job may use its slot.
      resume = yieldSlot?.(queueOf(job.trigger_type));
      // The entry stays in `running` until it is settled, so that its lease is renewed.
      if (ending !== null) {
        const left = {
          messages: attempt.messages,
          tookMs: clock.monotonic() - beganAt,
          memory: await attempt.memoryChanges(),
          hasSteps: attempt.hasSteps,
          answer: attempt.thinking?.answer ?? null,
        };
        // While the database is away the slot is taken back, so that no further job is claimed.
        const stack = outcome.kind === 'failed' ? outcome.stack : undefined;
        await finish(entry, ending, left, { onUnavailable: resume, stack });
      }
    } finally {
      resume?.();
      // In every case: a lease that is renewed without a run would block the job for ever.
      if (running.get(job.id) === entry) running.delete(job.id);
    }
  }

  function definitionOf(job: ClaimedJob) {
    return skills.definition(job.skill_category, job.skill_version, job.skill_name);
  }

  /** The ending of an attempt whose skill is not loaded here. */
  async function withoutSkill(job: ClaimedJob): Promise<Ending> {
    const returned = { kind: 'returned', unattributedDeath: false } as const;
    if (absentMs > 0 && definitionOf(job) === undefined) {
      try {
        // Another process may have loaded it meanwhile.
        await skills.refresh();
      } catch {
        return { ...returned, afterMs: elsewhereMs };
      }
    }
    // During a rolling update some workers have skills that others do not.
    if (definitionOf(job) !== undefined) return { ...returned, afterMs: elsewhereMs };
    const since = skills.goneSince(job.skill_category, job.skill_version, job.skill_name);
    if (since !== undefined && clock.now() - since < absentMs) {
      return { ...returned, afterMs: absentAgainMs };
    }
    return failure(`No definition of the skill ${nameOf(job)} is loaded here`);
  }

  async function finish(
    { job, stopped }: Pick<Running, 'job' | 'stopped'>,
    ending: Ending,
    left: Omit<Settlement, 'job' | 'ending'>,
    more: { onUnavailable?: (() => void) | undefined; stack?: string | undefined } = {},
  ): Promise<void> {
    const status = await settlePatiently({ job, ending, ...left }, more.onUnavailable);
    if (status === undefined) {
      log.error({ job_id: job.id, stopped }, 'a result could not be recorded before the stop');
      return;
    }
    if (status === null)
      log.warn({ job_id: job.id }, 'a late result was dropped: its lease had ended');
    else if (ending.kind === 'failed') {
      log.info(
        {
          job_id: job.id,
          skill: nameOf(job),
          attempt: job.attempt,
          status,
          error: ending.error,
          ...(more.stack === undefined ? {} : { stack: more.stack }),
        },
        'a run failed',
      );
    }
  }

  /** Settles, and tries again while the database is away; undefined when the platform stops before that. */
  async function settlePatiently(
    settlement: Settlement,
    onUnavailable?: () => void,
  ): Promise<JobStatus | null | undefined> {
    for (;;) {
      try {
        return await settle(settlement);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        onUnavailable?.();
        if (isClosed) return undefined;
        log.warn({ job_id: settlement.job.id }, 'a result waits: the database cannot be used');
        await elapsed(settleAgainMs);
      }
    }
  }

  return {
    async perform(jobId) {
      starting.set(jobId, { isCancelled: false });
      try {
        const job = await claim(jobId);
        if (job === null) return;
        onClaim?.();
        await begin(job);
      } finally {
        starting.delete(jobId);
      }
    },

    begin,

    cancel(jobId) {
      const entry = running.get(jobId);
      if (entry !== undefined) stop(entry, 'cancelled');
      const claimed = starting.get(jobId);
      if (claimed !== undefined) claimed.isCancelled = true;
    },

    async renew() {
      const entries = [...running.values()];
      if (entries.length === 0) return;
      const claims = entries.map(({ job }) => job);
      const rows = await database.write((tx) => renewLeases(tx, claims, clock.now() + leaseMs));
      const held = new Map(rows.map((row) => [row.id, row]));
      for (const entry of entries) {
        // A run that has ended meanwhile has no lease to lose.
        if (running.get(entry.job.id) !== entry) continue;
        const row = held.get(entry.job.id);
        if (row === undefined) stop(entry, 'lease lost');
        else if (row.cancel_requested_at !== null) stop(entry, 'cancelled');
      }
    },

    async findCancelled() {
      if (running.size === 0) return;
      for (const { id } of await findCancelling(database.read, [...running.keys()])) {
        const entry = running.get(id);
        if (entry !== undefined) stop(entry, 'cancelled');
      }
    },

    running: () => running.size,

    handBack() {
      isClosed = true;
      for (const entry of running.values()) stop(entry, 'handed back');
    },
  };
}

const abortReasons = {
  cancelled: 'the job was cancelled',
  'handed back': 'the platform is stopping',
  'lease lost': 'the job was given to another worker',
} as const;

function stop(entry: Running, reason: NonNullable<Running['stopped']>): void {
  if (entry.stopped !== null) return;
  entry.stopped = reason;
  entry.handle.abort(abortReasons[reason]);
}

/** The ending that follows from a run's outcome; null when the run has lost its lease. */
function endingOf(
  outcome: RunOutcome,
  { job, stopped }: Running,
  retryAfterMs: number | null,
): Ending | null {
  if (stopped === 'lease lost') return null;
  if (stopped === 'cancelled') return { kind: 'cancelled' };
  switch (outcome.kind) {
    case 'completed':
      return outcome;
    case 'failed':
      return {
        kind: 'failed',
        error: { code: outcome.code, message: outcome.message },
        retryable: outcome.retryable,
        ...(retryAfterMs === null || outcome.code !== 'upstream_unavailable'
          ? {}
          : { retryAfterMs }),
      };
    case 'timeout':
      return {
        kind: 'failed',
        error: { code: 'skill_timeout', message: outcome.message },
        retryable: true,
      };
    case 'lost':
      return {
        kind: 'failed',
        error: { code: 'worker_lost', message: outcome.message },
        // It has already run alone: it would kill every executor.
        retryable: job.deaths < deathsBeforeAlone,
      };
    case 'displaced':
      return { kind: 'returned', unattributedDeath: outcome.suspect };
    case 'aborted':
      return { kind: 'returned', unattributedDeath: false };
  }
}

function nameOf(job: ClaimedJob): string {
  return skillKey(job.skill_category, job.skill_version, job.skill_name);
}

function failure(message: string): Ending {
  return { kind: 'failed', error: { code: 'skill_execution_failed', message }, retryable: false };
}
