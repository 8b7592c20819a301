/**
 * The waits of one attempt while its run is loaded: each is answered as soon as it has ended, by its
 * deadline or by another process. When everything that the run does waits, the run is unloaded; from then
 * on the database alone knows its waits.
 */

import { JournalFault } from '../../journal/records.ts';
import { WaitScope } from '../../journal/wait-scope.ts';
import type { OpenWait, WaitEnd, WaitRequest } from '../../journal/waits.ts';
import { type Attempt, endOnFault, journalOf } from './attempt.ts';
import type { ReplayTurn } from './replay-order.ts';

/** Longest time between two checks of the deadlines. */
const checkEveryMs = 60_000;
/** Time after a failed check until the next one. */
const againMs = 100;

/** A run, or a tool in it, that is being unloaded is gone within this time, or has made a request. */
export const unloadMs = 1_000;

/** The answer to a run when a wait has ended; `at` is when that was recorded. */
export interface WaitAnswer {
  readonly value: unknown;
  readonly at: number;
}

interface Pending extends OpenWait {
  readonly ended: PromiseWithResolvers<WaitEnd>;
}

export function waitsOf(attempt: Attempt): RunWaits {
  attempt.waits ??= new RunWaits(attempt);
  return attempt.waits;
}

export class RunWaits {
  readonly #attempt: Attempt;
  readonly scope: WaitScope;
  readonly #pending = new Map<number, Pending>();
  /** Ended while the run was being unloaded: the run may not have got the end. */
  readonly #undelivered = new Set<number>();
  /** Since when the run is being unloaded, in monotonic milliseconds; null if it has made a request since. */
  #unloadingSince: number | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isSuspending = false;
  /** The check under way, and whether another one has to follow it. */
  #checking: Promise<void> | undefined;
  #isStale = false;
  /** Whether the last check found a deadline that has passed, of a wait that has not ended. */
  #isOverdue = false;
  /** Whether the log has a failure to read the waits. */
  #isReported = false;
  #isStopped = false;

  constructor(attempt: Attempt) {
    this.#attempt = attempt;
    this.scope = new WaitScope(() => this.#suspendSoon());
  }

  /** Waits, within a scope. Settles when the wait ends or the signal aborts; never if the run is unloaded. */
  async wait(
    request: WaitRequest,
    scope: WaitScope,
    signal: AbortSignal,
    turn?: ReplayTurn,
  ): Promise<WaitAnswer> {
    const begun = scope.work();
    const ended = Promise.withResolvers<WaitEnd>();
    let close: (() => void) | undefined;
    let n = 0;
    const abort = () => ended.reject(new Error('the run has ended'));
    try {
      const { context, waitKinds } = this.#attempt.runs;
      // Opened by the first wait: a run that only uses its memory has no journal.
      const journal = journalOf(this.#attempt);
      const wait = await journal.beginWait(waitKinds, request);
      if ('end' in wait) {
        const { at, place } = wait.end;
        await turn?.recorded({ n: wait.n, at, place });
        return answerOf(wait.end);
      }
      if (!wait.isOnRecord) context.observers.waitBegun(journal.job, wait);
      turn?.notRecorded();
      if (signal.aborted) throw new Error('the run has ended');
      signal.addEventListener('abort', abort, { once: true });
      n = wait.n;
      this.#pending.set(n, { ...wait, ended });
      close = scope.wait();
      this.#schedule();
      // It may have ended while it was not pending yet.
      if (this.#isStale || wait.isOnRecord) void this.checkWaits();
    } finally {
      begun();
    }
    try {
      const end = await ended.promise;
      // The run is not unloaded before it has got the end.
      const delivering = scope.work();
      try {
        await turn?.ended(n);
      } finally {
        delivering();
      }
      return answerOf(end);
    } finally {
      signal.removeEventListener('abort', abort);
      close();
    }
  }

  /**
   * Answers the waits that have ended. Calls during a check are one further check. A run that is being unloaded
   * gets no answer: what goes on with it in this process, such as a tool, would be stopped again.
   */
  async checkWaits(): Promise<void> {
    this.#isStale = true;
    const since = this.#unloadingSince;
    const leftMs = since === null ? 0 : since + unloadMs - this.#clock.monotonic();
    if (leftMs > 0) {
      this.#schedule(leftMs, leftMs);
      return;
    }
    this.#checking ??= this.#checkUntilFresh().finally(() => {
      this.#checking = undefined;
      this.#suspendSoon();
    });
    await this.#checking;
  }

  async #checkUntilFresh(): Promise<void> {
    const { waitKinds } = this.#attempt.runs;
    while (this.#isStale && this.#pending.size > 0 && !this.#isStopped) {
      this.#isStale = false;
      try {
        const pending = [...this.#pending.values()];
        const ends = await journalOf(this.#attempt).endsOfWaits(waitKinds, pending);
        for (const [n, end] of ends) {
          const ended = this.#pending.get(n);
          this.#pending.delete(n);
          if (this.#unloadingSince !== null) this.#undelivered.add(n);
          ended?.ended.resolve(end);
        }
      } catch (error) {
        this.#takeError(error);
      }
    }
    this.#isOverdue = this.#leftMs() <= 0;
    // After a failed check, wait before the next one.
    this.#schedule(againMs);
  }

  #takeError(error: unknown): void {
    const { runs, job } = this.#attempt;
    endOnFault(this.#attempt, error);
    if (error instanceof JournalFault || this.#isReported) return;
    this.#isReported = true;
    const subject = { err: error, job_id: job.id };
    runs.context.log.warn(subject, 'the waits of a run could not be read; they are read again');
  }

  get #clock() {
    return this.#attempt.runs.context.clock;
  }

  /** The run has made a request, so it was not unloaded before. */
  requestMade(): void {
    this.#undelivered.clear();
    this.#unloadingSince = null;
    if (this.#isStale && this.#pending.size > 0) void this.checkWaits();
  }

  /** The waits, by the number of their step, whose ends the run may not have got. */
  open(): number[] {
    return [...this.#pending.keys(), ...this.#undelivered];
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** In a later turn of the event loop, when all that happens in this one is known. */
  #suspendSoon(): void {
    if (this.#isSuspending) return;
    this.#isSuspending = true;
    setImmediate(() => {
      this.#isSuspending = false;
      if (this.#checking !== undefined || this.#isStopped) return;
      if (this.#pending.size === 0 || !this.scope.isBlocked()) return;
      const leftMs = this.#leftMs();
      if (leftMs > this.#attempt.runs.pace.keepLoadedMs) {
        this.#unloadingSince = this.#clock.monotonic();
        this.#attempt.handle?.suspend();
      } else if (leftMs <= 0 && !this.#isOverdue) {
        // The clock of a test may have passed the deadline since the timer was set.
        this.#schedule();
      }
    });
  }

  /** Milliseconds to the next deadline; none are left once it has passed. */
  #leftMs(): number {
    let dueAt = Number.POSITIVE_INFINITY;
    for (const one of this.#pending.values()) dueAt = Math.min(dueAt, one.dueAt);
    return dueAt - this.#clock.now();
  }

  /** Sets the timer to the next deadline, at least `leastMs` and at most `mostMs` away. */
  #schedule(leastMs = 0, mostMs = checkEveryMs): void {
    clearTimeout(this.#timer);
    if (this.#pending.size === 0 || this.#isStopped) return;
    const ms = Math.max(leastMs, Math.min(this.#leftMs(), mostMs));
    this.#timer = setTimeout(() => void this.checkWaits(), ms).unref();
  }
}

function answerOf(end: WaitEnd): WaitAnswer {
  if ('value' in end) return { value: end.value, at: end.at };
  const { message, ...more } = end.error;
  throw Object.assign(new Error(message), more, { at: end.at });
}
