/**
 * Runner: fills the slots of one queue in this process. A hint only announces that jobs of an organization are due; which ones
 * begin is decided from the rows, in the transaction that claims them (`turns.ts`). It reads rows only after an announcement or
 * while jobs are known to wait, and then as a slot is free. Where this process has no slot for what a hint announces, it
 * notifies the other processes once, because each hint reaches one of them. What all of them miss, the sweep announces again.
 */
import type { Transaction } from '../../../adapters/database/database.ts';
import type { ArrivedHint } from '../../../adapters/queue/queue.ts';
import type { Context } from '../../context/context.ts';
import type { ClaimedJob } from '../jobs.store.ts';
import type { JobQueue } from '../queues.ts';
import type { Performer } from '../runs/perform.ts';
import type { RunningJobs } from '../runs/running-jobs.ts';
import type { Admission } from './admission.ts';
import type { Candidate } from './turns.store.ts';
import { findTurns } from './turns.store.ts';
import type { DueJob, Turns } from './turns.ts';

/** Jobs of one key and priority that a claim reads beyond its slots: other processes may claim the first ones meanwhile. */
const sparesMax = 8;
/** Jobs of one key and priority that a claim reads. */
const ofGroupMax = 64;
/** Times that a claim picks, again in place of jobs that another process has locked: enough for all spares of a group. */
const picksMax = 64;
/** Claims in a row that found due jobs and got none, after which the organizations wait for the next event. */
const fruitlessMax = 3;

interface RunnerParts {
  readonly queue: JobQueue;
  readonly turns: Turns;
  readonly admission: Admission;
  readonly performer: Performer;
  readonly running: RunningJobs;
  /** The assumed difference of the clocks of two processes: a row that is due within this time is due now. */
  readonly clockSkewMs?: number | undefined;
}

/** What a transaction has claimed, and the organizations of which more is due. */
interface Claimed {
  readonly jobs: readonly ClaimedJob[];
  readonly left: ReadonlySet<string>;
  /** Whether all jobs that were picked are other processes'. */
  readonly wonNone: boolean;
}

/** The runners of a process, by queue, once they are made. */
export type JobRunners = ReadonlyMap<JobQueue, JobRunner>;

export class JobRunner {
  readonly #context: Context;
  readonly #parts: RunnerParts;
  /** Organizations of which a hint has come here since the other processes were last notified. */
  readonly #hinted = new Set<string>();
  readonly #idle = Promise.withResolvers<void>();
  #isClaiming = false;
  #isStopped = false;
  /** Claims in a row that got none of the jobs that they picked. */
  #fruitless = 0;
  /** Jobs under way. */
  #running = 0;

  constructor(context: Context, parts: RunnerParts) {
    this.#context = context;
    this.#parts = parts;
    parts.turns.whenGivenBack(() => this.#fill());
  }

  /** From now on hints come. Beside other processes no job begins as it is accepted: one of them may have more free slots. */
  start(): void {
    this.#parts.turns.offersSlots = this.#context.bus === null;
  }

  /** A hint has come; those of jobs name an organization. */
  handleHint({ organizationId }: ArrivedHint): void {
    if (organizationId !== undefined) this.announce(organizationId);
  }

  /** Jobs of the organization are due, which a hint has announced to this process alone. */
  announce(organizationId: string): void {
    if (this.#context.bus !== null) this.#hinted.add(organizationId);
    this.announceHere(organizationId);
    if (!this.hasSlotFor(organizationId)) this.#passOn(organizationId);
  }

  /** Whether a job of the organization may begin here now. */
  hasSlotFor(organizationId: string): boolean {
    return !this.#isStopped && this.#parts.turns.hasSlotFor(organizationId);
  }

  /** Jobs of the organization are due, which other processes know. */
  announceHere(organizationId: string): void {
    if (this.#isStopped) return;
    this.#parts.turns.announce(organizationId);
    this.#fill();
  }

  /** Runs a job that was claimed, with its slot, as it was accepted. */
  beginAccepted(job: ClaimedJob): void {
    void this.#occupy(job, () => this.#parts.performer.performAccepted(job));
  }

  /** Yields the slot of a job that only waits; the returned function (resume) takes it back. */
  yieldSlot(organizationId: string): () => void {
    const resume = this.#parts.turns.yieldSlot(organizationId);
    this.#fill();
    return resume;
  }

  /** Claims no more; resolves when the jobs under way have ended. */
  stop(): Promise<void> {
    this.#isStopped = true;
    this.#parts.turns.offersSlots = false;
    this.#endIfIdle();
    return this.#idle.promise;
  }

  /** Claims due jobs while slots are free for them. */
  #fill(): void {
    this.#fruitless = 0;
    if (this.#isClaiming || this.#isStopped || !this.#parts.turns.mayClaim()) return;
    this.#isClaiming = true;
    void this.#claimAll();
  }

  async #claimAll(): Promise<void> {
    try {
      do await this.#claim();
      while (!this.#isStopped && this.#fruitless < fruitlessMax && this.#parts.turns.mayClaim());
    } catch (err) {
      this.#context.log.warn({ err }, 'due jobs are not claimed; the sweep announces them again');
    }
    this.#isClaiming = false;
    this.#endIfIdle();
  }

  async #claim(): Promise<void> {
    const { turns, running, performer } = this.#parts;
    const picked = new Set<string>();
    let candidates: readonly Candidate[] = [];
    try {
      const { jobs, left, wonNone } = await this.#context.database.write((tx) => {
        // Decided when the transaction runs, not when it is requested: slots may be freed until then.
        candidates = turns.candidates();
        return this.#claimWithin(tx, candidates, picked);
      });
      this.#fruitless = wonNone ? this.#fruitless + 1 : 0;
      for (const job of jobs) {
        picked.delete(job.id);
        turns.takeSlot(job);
        void this.#occupy(job, () => performer.perform(job));
      }
      turns.endClaim(candidates, left);
    } catch (err) {
      turns.endClaim(candidates, new Set(candidates.map(({ organization_id }) => organization_id)));
      throw err;
    } finally {
      for (const id of picked) running.endStart(id);
    }
    for (const id of this.#hinted) {
      if (!turns.isWaiting(id)) this.#hinted.delete(id);
      else if (!turns.hasSlotFor(id)) this.#passOn(id);
    }
  }

  /** Claims jobs in the order of their turns; adds the ids of all that it tries to `picked`. */
  async #claimWithin(
    tx: Transaction,
    candidates: readonly Candidate[],
    picked: Set<string>,
  ): Promise<Claimed> {
    const { queue, turns, admission, running, clockSkewMs = 0 } = this.#parts;
    if (candidates.length === 0) return { jobs: [], left: new Set(), wonNone: false };
    const max = turns.beginClaim(candidates);
    const spares = tx.dialect === 'sqlite' ? 1 : sparesMax;
    const ofGroup = Math.min(max + spares, ofGroupMax);
    const now = this.#context.clock.now();
    const times = { now, dueBy: now + clockSkewMs };
    const found = await findTurns(tx, queue, candidates, { ...times, ofGroup });
    const round = turns.round(candidates, found.due);
    const jobs: ClaimedJob[] = [];
    const held = new Set<string>();
    for (let picks = 0; picks < picksMax && jobs.length < max; picks++) {
      const chosen: DueJob[] = [];
      for (let job = round.next(); job !== undefined; job = round.next()) chosen.push(job);
      if (chosen.length === 0) break;
      const ids = chosen.map(({ id }) => id);
      for (const id of ids) {
        picked.add(id);
        running.start(id);
      }
      const claims = await admission.claim(tx, ids, held);
      claims.forEach((job, i) => {
        if (job !== null) jobs.push(job);
        else round.lose(chosen[i] as DueJob);
      });
    }
    const left = new Set([...round.left(), ...found.cut]);
    // Held jobs are out of the way of the next claim.
    const wonNone = picked.size > 0 && jobs.length === 0 && held.size === 0;
    return { jobs, left, wonNone };
  }

  /** Does the work on a job in the slot that it has taken. */
  async #occupy(job: ClaimedJob, work: () => Promise<void>): Promise<void> {
    this.#running += 1;
    try {
      await work();
    } catch (err) {
      this.#context.log.error({ err, job_id: job.id }, 'the run of a job went wrong');
    }
    this.#running -= 1;
    this.#parts.turns.end(job.organization_id);
    this.#fill();
    this.#endIfIdle();
  }

  /** Notifies the other processes of due jobs for which this one has no slot, once for each hint. */
  #passOn(organizationId: string): void {
    if (!this.#hinted.delete(organizationId)) return;
    this.#context.bus?.send('due-jobs', `${this.#parts.queue} ${organizationId}`);
  }

  /** Once stopped, it claims nothing more: others are to claim what is known here, and it ends with its last job. */
  #endIfIdle(): void {
    if (!this.#isStopped || this.#isClaiming) return;
    for (const id of this.#hinted) this.#passOn(id);
    if (this.#running === 0) this.#idle.resolve();
  }
}
