/**
 * Perform: turns a hint into a claim (attempt charged, lease taken), the claim into a run in an
 * executor, and the run's outcome into a settlement. It holds a lease for each run and stops
 * a run whose lease it has lost. It never trusts a hint, and never runs skill code in this process. It has more than 300
 * lines because how a run begins, how it may be stopped and how it ends have to be read together.
 */
import { createBatch } from '../../adapters/database/batch.ts';
import type { Database } from '../../adapters/database/database.ts';
import type { YieldSlot } from '../../adapters/queue/queue.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/log.ts';
import { ShortLivedMap } from '../../kernel/short-lived-map.ts';
import type { RunOutcome } from '../executors/run.ts';
import { settlePatiently } from '../leases/settle-patiently.ts';
import type { RunSettings, SkillSettings } from '../skills/settings.ts';
import { type Admission, skillOf } from './admission.ts';
import type { JobFeed } from './feed.ts';
import { type ClaimedJob, findCancelling } from './jobs.store.ts';
import { recordBegun, renewLeases } from './leases.store.ts';
import { queueOf } from './queues.ts';
import type { Run, RunExtras, StartRun } from './run.ts';
import { settingsOfRun } from './run-settings.ts';
import type { Settle, Settlement } from './settle.ts';
import { type AttemptOutcome, failureOf, isLastAttempt } from './states.ts';
import { activeEvent } from './status-events.ts';

export interface PerformDeps {
  readonly base: { readonly database: Database; readonly clock: Clock; readonly log: Logger };
  /** The verbs of a job's way, in the order in which they are called. */
  readonly verbs: {
    readonly admission: Pick<Admission, 'claim' | 'admit' | 'refuse'>;
    readonly settings: Pick<SkillSettings, 'forRun'>;
    readonly startRun: StartRun;
    readonly settle: Settle;
    readonly feed: JobFeed;
  };
  readonly leaseMs: number;
  /** Yields the slot of a job to another while its outcome is being recorded. */
  readonly yieldSlot?: YieldSlot;
  readonly observer?: {
    /** Called at each claim of a job from a queue. */
    claimed(): void;
    /** Called for each job that begins here, from a queue or when it was accepted. */
    begun(): void;
  };
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
  /** Answers the waits of a job's run here that have ended. */
  wake(jobId: string): void;
  /** Answers the waits of all runs here that have ended, in case a message of another process was lost. */
  lookAtWaits(): Promise<void>;
  running(): number;
  /** Whether a claim of the job is being made here, or is held. */
  holds(jobId: string): boolean;
  /** Whether a run of the job is under way here, was not asked to stop and has no outcome yet. */
  isRunning(jobId: string): boolean;
  /** Milliseconds since the oldest run here began; 0 if there is none. */
  oldestMs(): number;
  /** Aborts all runs; each job goes back to the queue and its attempt is not charged. */
  handBack(): void;
}

interface Running {
  readonly job: ClaimedJob;
  readonly attempt: Run;
  /** In monotonic milliseconds. */
  readonly beganAt: number;
  /** Why it was aborted; decides how it ends. */
  stopped: keyof typeof abortReasons | null;
  hasOutcome: boolean;
}

const abortReasons = {
  cancelled: 'the job was cancelled',
  'handed back': 'the platform is stopping',
  'lease lost': 'the job was given to another worker',
} as const;

interface Performing extends PerformDeps {
  readonly claim: (jobId: string) => Promise<ClaimedJob | null>;
  /** Records that the code of a claim begins; whether it still holds its job. */
  readonly recordBeginning: (job: ClaimedJob) => Promise<boolean>;
  /** By job, until they are settled. */
  readonly running: ShortLivedMap<string, Running>;
  /** Jobs being claimed, and whether they are to be cancelled as soon as they run. */
  readonly starting: Map<string, { isCancelled: boolean }>;
  isClosed: boolean;
}

export function createPerformer(deps: PerformDeps): Performer {
  const { database } = deps.base;
  const { admission } = deps.verbs;
  const performing: Performing = {
    ...deps,
    claim: createBatch(database, (tx, ids) => admission.claim(tx, ids)),
    recordBeginning: createBatch(database, recordBegun),
    running: new ShortLivedMap(),
    starting: new Map(),
    isClosed: false,
  };
  return {
    perform: (jobId) => perform(performing, jobId),
    begin: (job) => begin(performing, job),
    cancel: (jobId) => cancel(performing, jobId),
    renew: () => renew(performing),
    findCancelled: () => findCancelled(performing),
    wake: (jobId) => void performing.running.get(jobId)?.attempt.look(),
    lookAtWaits: () => lookAtWaits(performing),
    running: () => performing.running.size,
    holds: (jobId) => performing.running.get(jobId) !== undefined || performing.starting.has(jobId),
    isRunning: (jobId) => isRunning(performing, jobId),
    oldestMs: () => oldestMs(performing),
    handBack: () => handBack(performing),
  };
}

async function perform(performing: Performing, jobId: string): Promise<void> {
  const { starting, claim, observer } = performing;
  starting.set(jobId, { isCancelled: false });
  try {
    const job = await claim(jobId);
    if (job === null) return;
    observer?.claimed();
    await begin(performing, job);
  } finally {
    starting.delete(jobId);
  }
}

function begin(performing: Performing, job: ClaimedJob): Promise<void> {
  const { feed } = performing.verbs;
  performing.observer?.begun();
  if (feed.hasListeners(job.id)) feed.publish(job.id, activeEvent(job));
  return run(performing, job);
}

async function run(performing: Performing, job: ClaimedJob): Promise<void> {
  const { running } = performing;
  const { clock } = performing.base;
  const { admission, settings, startRun } = performing.verbs;
  const options = admission.admit(job);
  if (options === null) {
    const outcome = await admission.refuse(job);
    return finish(performing, { job, outcome, messages: [] });
  }
  const { configured } = options;
  const found = configured && (await settingsOfRun(settings, job, configured));
  if (found && 'outcome' in found) {
    return finish(performing, { job, outcome: found.outcome, messages: [] });
  }
  const attempt = startRun(job, options, extrasOf(performing, job, found?.settings));
  const beganAt = clock.monotonic();
  const entry: Running = { job, attempt, beganAt, stopped: null, hasOutcome: false };
  track(performing, entry);
  let resume: (() => void) | undefined;
  try {
    const reported = await attempt.handle.outcome;
    entry.hasOutcome = true;
    let outcome = outcomeOf(reported, entry.stopped, attempt.thinking?.retryAfterMs ?? null);
    // Most runs have nothing to wait for here, and each `await` costs.
    const reports = attempt.ended();
    if (reports !== null) await reports;
    // An earlier claim may have left what this one did not ask for.
    const mayDiverge = attempt.openedJournal || job.epoch > 1;
    if (outcome !== null && mayDiverge) outcome = await attempt.checked(outcome);
    // From here on the run only waits for the database, so another job may use its slot.
    resume = performing.yieldSlot?.(queueOf(job.trigger_type), job.organization_id);
    // The entry stays in `running` until it is settled, so that its lease is renewed.
    if (outcome === null) return;
    const memory = attempt.memoryChanges();
    const settlement = {
      job,
      outcome,
      messages: attempt.messages,
      tookMs: clock.monotonic() - beganAt,
      memory: memory && (await memory),
      openedJournal: attempt.openedJournal,
      openWaits: attempt.openWaits(),
      answer: attempt.thinking?.answer ?? null,
      answerField: options.answerField,
      // What an earlier claim has recorded of the job is not known here.
      unchanged: reports === null && !mayDiverge ? job : undefined,
    };
    // While the database is away the slot is taken back, so that no further job is claimed.
    await finish(performing, settlement, resume);
  } finally {
    resume?.();
    // In every case: a lease that is renewed without a run would block the job for ever.
    if (running.get(job.id) === entry) running.delete(job.id);
  }
}

/** Undefined for most runs: it costs them no object. */
function extrasOf(
  performing: Performing,
  job: ClaimedJob,
  settings?: RunSettings,
): RunExtras | undefined {
  if (settings === undefined && !isLastAttempt(job)) return undefined;
  return {
    ...(settings === undefined ? {} : { settings }),
    ...(isLastAttempt(job) ? { mayBegin: () => mayBegin(performing, job) } : {}),
  };
}

/**
 * Records that the code of a job's last attempt begins, before it does: if this process dies then, the job ends, because
 * its code may have acted. False where the claim no longer holds the job, or that is not known.
 */
async function mayBegin(performing: Performing, job: ClaimedJob): Promise<boolean> {
  const { running, recordBeginning } = performing;
  const { log } = performing.base;
  try {
    const isHeld = await settlePatiently(
      () => recordBeginning(job),
      () => !performing.isClosed,
    );
    if (isHeld) return true;
    log.warn({ job_id: job.id }, 'a run did not begin: its lease had ended, or the platform stops');
  } catch (err) {
    log.error({ err, job_id: job.id }, 'a run did not begin: that it does could not be recorded');
  }
  const entry = running.get(job.id);
  if (entry?.job === job) stop(entry, 'lease lost');
  return false;
}

function isRunning({ running }: Performing, jobId: string): boolean {
  const entry = running.get(jobId);
  return entry !== undefined && entry.stopped === null && !entry.hasOutcome;
}

function oldestMs({ running, base: { clock } }: Performing): number {
  const now = clock.monotonic();
  return running.values().reduce((most, { beganAt }) => Math.max(most, now - beganAt), 0);
}

/** Adds a run to those whose leases are renewed and which can be cancelled. */
function track({ running, starting }: Performing, entry: Running): void {
  const { id } = entry.job;
  // A run of an earlier claim is here only if its lease has expired without its notice.
  const earlier = running.get(id);
  if (earlier !== undefined) stop(earlier, 'lease lost');
  running.set(id, entry);
  if (starting.get(id)?.isCancelled) stop(entry, 'cancelled');
  starting.delete(id);
}

/** Settles the attempt and logs what is unusual about it. */
async function finish(
  performing: Performing,
  settlement: Settlement,
  onUnavailable?: () => void,
): Promise<void> {
  const { log } = performing.base;
  const { job, outcome } = settlement;
  let tries = 0;
  const status = await settlePatiently(
    () => {
      tries += 1;
      return performing.verbs.settle(settlement);
    },
    () => {
      onUnavailable?.();
      if (performing.isClosed) return false;
      log.warn({ job_id: job.id }, 'a result waits: the database cannot be used');
      return true;
    },
  );
  if (status === undefined) {
    const ended = { job_id: job.id, outcome: outcome.kind };
    log.error(ended, 'a result could not be recorded before the stop');
    return;
  }
  if (status === null && tries > 1) {
    log.info(
      { job_id: job.id },
      'a result is on record without a confirmation, or its lease had ended',
    );
    return;
  }
  if (status === null) {
    log.warn({ job_id: job.id }, 'a late result was dropped: its lease had ended');
    return;
  }
  const error = failureOf(outcome);
  if (error === null) return;
  const stack = 'stack' in outcome ? { stack: outcome.stack } : {};
  const { id, attempt } = job;
  log.info({ job_id: id, skill: skillOf(job), attempt, status, error, ...stack }, 'a run failed');
}

function cancel({ running, starting }: Performing, jobId: string): void {
  const entry = running.get(jobId);
  if (entry !== undefined) stop(entry, 'cancelled');
  const claimed = starting.get(jobId);
  if (claimed !== undefined) claimed.isCancelled = true;
}

async function renew({ base, leaseMs, running }: Performing): Promise<void> {
  const { database, clock } = base;
  const entries = running.values();
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
}

async function findCancelled({ base: { database }, running }: Performing): Promise<void> {
  if (running.size === 0) return;
  for (const { id } of await findCancelling(database.read, { ids: running.keys() })) {
    const entry = running.get(id);
    if (entry !== undefined) stop(entry, 'cancelled');
  }
}

async function lookAtWaits({ running }: Performing): Promise<void> {
  await Promise.all(running.values().map(({ attempt }) => attempt.look()));
}

function handBack(performing: Performing): void {
  performing.isClosed = true;
  for (const entry of performing.running.values()) stop(entry, 'handed back');
}

function stop(entry: Running, reason: keyof typeof abortReasons): void {
  if (entry.stopped !== null) return;
  entry.stopped = reason;
  entry.attempt.handle.abort(abortReasons[reason]);
}

/** What a run's outcome means for its job; null when the run has lost its lease. */
function outcomeOf(
  outcome: RunOutcome,
  stopped: Running['stopped'],
  retryAfterMs: number | null,
): AttemptOutcome | null {
  if (stopped === 'lease lost') return null;
  if (stopped === 'cancelled') return { kind: 'cancelled' };
  const wasRefused = outcome.kind === 'failed' && outcome.code === 'upstream_unavailable';
  return wasRefused && retryAfterMs !== null ? { ...outcome, retryAfterMs } : outcome;
}
