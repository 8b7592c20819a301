/**
 * The jobs that this process claims and runs, from the claim until they are settled. It renews their leases, and
 * stops the runs that have lost theirs, are to be cancelled, or are handed back because the platform stops.
 */

import { ShortLivedMap } from '../../../kernel/short-lived-map.ts';
import type { Context } from '../../context/context.ts';
import { type ClaimedJob, findCancelling } from '../jobs.store.ts';
import { renewLeases } from '../leases.store.ts';
import type { AttemptRun } from './run.ts';

const abortReasons = {
  cancelled: 'the job was cancelled',
  'handed back': 'the platform is stopping',
  'lease lost': 'the job was given to another worker',
} as const;

/** A run under way, until it is settled. */
export class RunningJob {
  readonly job: ClaimedJob;
  readonly run: AttemptRun;
  /** In monotonic milliseconds. */
  readonly beganAt: number;
  /** Why it was aborted; decides how it ends. */
  stopped: keyof typeof abortReasons | null = null;
  hasOutcome = false;

  constructor(job: ClaimedJob, run: AttemptRun, beganAt: number) {
    this.job = job;
    this.run = run;
    this.beganAt = beganAt;
  }

  stop(reason: keyof typeof abortReasons): void {
    if (this.stopped !== null) return;
    this.stopped = reason;
    this.run.handle.abort(abortReasons[reason]);
  }
}

export class RunningJobs {
  readonly #context: Context;
  readonly #running = new ShortLivedMap<string, RunningJob>();
  /** Jobs being claimed, and whether they are to be cancelled as soon as they run. */
  readonly #starting = new Map<string, { isCancelled: boolean }>();
  /** Whether the platform stops. */
  isClosed = false;

  constructor(context: Context) {
    this.#context = context;
  }

  /** A claim of the job is being made. */
  start(jobId: string): void {
    this.#starting.set(jobId, { isCancelled: false });
  }

  /** Forgets a claim that was not made; `add` forgets one whose run begins. */
  endStart(jobId: string): void {
    this.#starting.delete(jobId);
  }

  /** Adds a run to those whose leases are renewed and which can be cancelled. */
  add(entry: RunningJob): void {
    const { id } = entry.job;
    // A run of an earlier claim is here only if its lease has expired without its notice.
    this.#running.get(id)?.stop('lease lost');
    this.#running.set(id, entry);
    if (this.#starting.get(id)?.isCancelled) entry.stop('cancelled');
    this.#starting.delete(id);
  }

  remove(entry: RunningJob): void {
    const { id } = entry.job;
    if (this.#running.get(id) === entry) this.#running.delete(id);
  }

  /** The job can no longer begin under this claim. */
  loseLease(job: ClaimedJob): void {
    const entry = this.#running.get(job.id);
    if (entry?.job === job) entry.stop('lease lost');
  }

  /** Aborts the run of a job, in whatever process it is. */
  cancel(jobId: string): void {
    this.cancelHere(jobId);
    this.#context.bus?.send('cancellations', jobId);
  }

  /** Aborts the run of a job in this process, if there is one. */
  cancelHere(jobId: string): void {
    this.#running.get(jobId)?.stop('cancelled');
    const claimed = this.#starting.get(jobId);
    if (claimed !== undefined) claimed.isCancelled = true;
  }

  /** Answers the waits of a job's run that have ended, in whatever process it is. */
  wake(jobId: string): void {
    this.wakeHere(jobId);
    this.#context.bus?.send('wake-ups', jobId);
  }

  /** Answers the waits of a job's run in this process that have ended. */
  wakeHere(jobId: string): void {
    void this.#running.get(jobId)?.run.answerWaits();
  }

  /** Answers the waits of all runs here that have ended, in case a message of another process was lost. */
  async answerWaits(): Promise<void> {
    await Promise.all(this.#running.values().map(({ run }) => run.answerWaits()));
  }

  /** Renews all leases; aborts the runs that have lost theirs or are to be cancelled. */
  async renewLeases(): Promise<void> {
    const { database, clock, config } = this.#context;
    const entries = this.#running.values();
    if (entries.length === 0) return;
    const claims = entries.map(({ job }) => job);
    // Counted from the write itself: it may have waited for its turn, or be a second try.
    const rows = await database.write((tx) =>
      renewLeases(tx, claims, clock.now() + config.jobLeaseMs),
    );
    const held = new Map(rows.map((row) => [row.id, row]));
    for (const entry of entries) {
      // A run that has ended meanwhile has no lease to lose.
      if (this.#running.get(entry.job.id) !== entry) continue;
      const row = held.get(entry.job.id);
      if (row === undefined) entry.stop('lease lost');
      else if (row.cancel_requested_at !== null) entry.stop('cancelled');
    }
  }

  /** Aborts the runs whose cancellation another process recorded, in case its message was lost. */
  async findCancelled(): Promise<void> {
    if (this.#running.size === 0) return;
    const { read } = this.#context.database;
    for (const { id } of await findCancelling(read, { ids: this.#running.keys() })) {
      this.#running.get(id)?.stop('cancelled');
    }
  }

  /** Aborts all runs; each job goes back to the queue and its attempt is not charged. */
  handBack(): void {
    this.isClosed = true;
    for (const entry of this.#running.values()) entry.stop('handed back');
  }

  count(): number {
    return this.#running.size;
  }

  /** Whether a claim of the job is being made here, or is held. */
  holds(jobId: string): boolean {
    return this.#running.get(jobId) !== undefined || this.#starting.has(jobId);
  }

  /** Whether a run of the job is under way here, has no request to stop and no outcome yet. */
  isRunning(jobId: string): boolean {
    const entry = this.#running.get(jobId);
    return entry !== undefined && entry.stopped === null && !entry.hasOutcome;
  }

  /** Milliseconds since the oldest run here began; 0 if there is none. */
  oldestMs(): number {
    const now = this.#context.clock.monotonic();
    return this.#running.values().reduce((most, { beganAt }) => Math.max(most, now - beganAt), 0);
  }
}
