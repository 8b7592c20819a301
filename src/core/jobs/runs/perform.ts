/**
 * Perform: turns a claim into a run in an executor, and the run's outcome into a settlement. It never runs skill code in this
 * process.
 */
import { Batch } from '../../../adapters/database/batch.ts';
import type { Context } from '../../context/context.ts';
import type { RunLeft } from '../../context/run-observer.ts';
import type { RunOutcome } from '../../executors/run.ts';
import { settlePatiently } from '../../leases/settle-patiently.ts';
import type { ClaimedJob } from '../jobs.store.ts';
import { recordBegun } from '../leases.store.ts';
import { queueOf } from '../queues.ts';
import type { Settlement, Settler } from '../settle.ts';
import { type AttemptOutcome, failureOf, isLastAttempt } from '../states.ts';
import { skillOf } from '../turns/admission.ts';
import type { Runs } from './attempt.ts';
import { startRun } from './run.ts';
import { settingsOfRun } from './run-settings.ts';
import { RunningJob, type RunningJobs } from './running-jobs.ts';
import type { YieldedSlots } from './yielding.ts';

/** The parts of a job's way through this process. */
interface PerformerParts {
  readonly runs: Runs;
  readonly running: RunningJobs;
  readonly settler: Settler;
  /** The slots of jobs that are yielded to others while outcomes are being recorded; null where none are. */
  readonly settlingSlots: YieldedSlots | null;
}

export class Performer {
  readonly #context: Context;
  readonly #parts: PerformerParts;
  /** Records that the code of a claim begins; whether the claim still holds its job. */
  readonly #beginnings: Batch<ClaimedJob, boolean>;

  constructor(context: Context, parts: PerformerParts) {
    const { database } = context;
    this.#context = context;
    this.#parts = parts;
    this.#beginnings = new Batch<ClaimedJob, boolean>(database, recordBegun);
  }

  /** Runs a job that a runner has claimed from the queue; resolves when it is settled. */
  async perform(job: ClaimedJob): Promise<void> {
    try {
      this.#context.observers.claimed(job);
      await this.performAccepted(job);
    } finally {
      this.#parts.running.endStart(job.id);
    }
  }

  /** Runs a job that was claimed as it was accepted; resolves when it is settled. */
  async performAccepted(job: ClaimedJob): Promise<void> {
    const { observers } = this.#context;
    observers.begun(job);
    let how: RunLeft = 'unrecorded';
    try {
      how = await this.#run(job);
    } finally {
      observers.left(job, how);
    }
  }

  async #run(job: ClaimedJob): Promise<RunLeft> {
    const { clock } = this.#context;
    const { runs, running, settlingSlots } = this.#parts;
    const { admission, skillSettings } = runs;
    const options = admission.admit(job);
    if (options === null) {
      const outcome = await admission.refuse(job);
      return this.#finish({ job, outcome, messages: [] });
    }
    const { configured } = options;
    const found = configured && (await settingsOfRun(skillSettings, job, configured));
    if (found && 'outcome' in found) {
      return this.#finish({ job, outcome: found.outcome, messages: [] });
    }
    const rates = runs.places.ratesOf(job);
    const isRecorded = rates.length > 0 || isLastAttempt(job);
    const confirmStart = isRecorded ? () => this.#recordStart(job, rates) : undefined;
    const run = startRun(runs, job, options, found?.settings, confirmStart);
    const beganAt = clock.monotonic();
    const entry = new RunningJob(job, run, beganAt);
    running.add(entry);
    let resume: (() => void) | undefined;
    try {
      const reported = await run.handle.outcome;
      entry.hasOutcome = true;
      let outcome = outcomeOf(reported, entry.stopped, run.thinking?.retryAfterMs ?? null);
      // Most runs have nothing to wait for here, and each `await` costs.
      const reports = run.ended();
      if (reports !== null) await reports;
      // An earlier claim may have left what this one did not ask for.
      const mayDiverge = run.openedJournal || job.epoch > 1;
      if (outcome !== null && mayDiverge) outcome = await run.checked(outcome);
      // From here on the run only waits for the database, so another job may use its slot.
      resume = settlingSlots?.yieldSlot(queueOf(job.trigger_type), job.organization_id);
      // The entry stays among the running jobs until it is settled, so that its lease is renewed.
      if (outcome === null) return 'lease lost';
      const memory = run.memoryChanges();
      const settlement = {
        job,
        outcome,
        messages: run.messages,
        tookMs: clock.monotonic() - beganAt,
        memory: memory && (await memory),
        openedJournal: run.openedJournal,
        openWaits: run.openWaits(),
        answer: run.thinking?.answer ?? null,
        answerField: options.answerField,
        // What an earlier claim has recorded of the job is not known here.
        unchanged: reports === null && !mayDiverge ? job : undefined,
      };
      // While the database is away the slot is taken back, so that no further job is claimed.
      return await this.#finish(settlement, resume);
    } finally {
      resume?.();
      // In every case: a lease that is renewed without a run would block the job for ever.
      running.remove(entry);
    }
  }

  /**
   * Records that the code of a job's last attempt begins, before it does: if this process dies then, the job ends, because
   * its code may have acted. Then counts the start at the rates of the job. False where the claim no longer holds the job, or
   * that is not known.
   */
  async #recordStart(job: ClaimedJob, rates: readonly string[]): Promise<boolean> {
    const { running, runs } = this.#parts;
    const { log } = this.#context;
    const record = async () => {
      if (isLastAttempt(job) && !(await this.#beginnings.add(job))) return false;
      return rates.length === 0 || runs.places.uses.starts.countStart(job, 0, rates);
    };
    try {
      if (await settlePatiently(record, () => !running.isClosed)) return true;
      log.warn(
        { job_id: job.id },
        'a run did not begin: its lease had ended, or the platform stops',
      );
    } catch (err) {
      log.error({ err, job_id: job.id }, 'a run did not begin: that it does could not be recorded');
    }
    running.loseLease(job);
    return false;
  }

  /** Settles the attempt and logs what is unusual about it. */
  async #finish(settlement: Settlement, onUnavailable?: () => void): Promise<RunLeft> {
    const { log } = this.#context;
    const { running, settler } = this.#parts;
    const { job, outcome } = settlement;
    let tries = 0;
    const status = await settlePatiently(
      () => {
        tries += 1;
        return settler.settle(settlement);
      },
      () => {
        onUnavailable?.();
        if (running.isClosed) return false;
        log.warn({ job_id: job.id }, 'a result waits: the database cannot be used');
        return true;
      },
    );
    if (status === undefined) {
      const ended = { job_id: job.id, outcome: outcome.kind };
      log.error(ended, 'a result could not be recorded before the stop');
      return 'unrecorded';
    }
    if (status === null && tries > 1) {
      log.info(
        { job_id: job.id },
        'a result is on record without a confirmation, or its lease had ended',
      );
      return 'unconfirmed';
    }
    if (status === null) {
      log.warn({ job_id: job.id }, 'a late result was dropped: its lease had ended');
      return 'lease lost';
    }
    const error = failureOf(outcome);
    if (error === null) return 'settled';
    const stack = 'stack' in outcome ? { stack: outcome.stack } : {};
    const { id, attempt } = job;
    log.info({ job_id: id, skill: skillOf(job), attempt, status, error, ...stack }, 'a run failed');
    return 'settled';
  }
}

/** What a run's outcome means for its job; null when the run has lost its lease. */
function outcomeOf(
  outcome: RunOutcome,
  stopped: RunningJob['stopped'],
  retryAfterMs: number | null,
): AttemptOutcome | null {
  if (stopped === 'lease lost') return null;
  if (stopped === 'cancelled') return { kind: 'cancelled' };
  const wasRefused = outcome.kind === 'failed' && outcome.code === 'upstream_unavailable';
  if (!wasRefused || retryAfterMs === null) return outcome;
  return { ...outcome, retryAfterMs: Math.max(retryAfterMs, outcome.retryAfterMs ?? 0) };
}
