/**
 * The pool of executors: takes runs, assigns each to a child, and reports its outcome. Promises exactly
 * one outcome for every run, and that no child outlives the pool or the process that made it. While nothing runs, its
 * only timer is the one that ends its children; the next run starts one. Never runs skill code in this process.
 */
import { withDeadline } from '../../kernel/with-deadline.ts';
import type { LeftOutSkill } from '../skills/sources/load-error.ts';
import type { LoadedSkill } from '../skills/sources/modules.ts';
import type { Executor } from './executor.ts';
import type { FoundSkills } from './loading.ts';
import { type PoolOptions, type PoolSettings, readPoolOptions } from './pool-options.ts';
import { PoolRun } from './pool-run.ts';
import { IdleTimer, Watch } from './pool-timers.ts';
import { ProcessPool } from './process-pool.ts';
import type { RunHandle, RunHandlers, RunRequest } from './run.ts';

export interface PoolStats {
  /** Ready children, including the spare. */
  readonly executors: number;
  readonly starting: number;
  /** Runs without an outcome, including waiting ones. */
  readonly inFlight: number;
  /** Runs that no child has taken yet. */
  readonly waiting: number;
  /** Milliseconds for which the first of them has waited; 0 if none waits. */
  readonly waitedMs: number;
  /** Children lost to a fault since the start. */
  readonly deaths: number;
  /** Starts that have failed in a row; above 2 the pool waits between them. */
  readonly failedStarts: number;
}

/** The part of a pool that starts runs: of executors, of services outside, or of both. */
export type RunStarter = Pick<ExecutorPool, 'run'>;

export interface ExecutorPool {
  /** The skills that the first child found, in the order of the files. */
  readonly definitions: readonly LoadedSkill[];
  /** What is left out: a SKILL.md that breaks a rule, a folder that is too deep, a file that no longer loads. */
  leftOut: readonly LeftOutSkill[];
  /** What the files that a plan let it load have read. */
  readonly files?: FoundSkills['files'];
  /** Files whose last version that loaded no longer loads either. */
  readonly failing?: FoundSkills['failing'];
  /** Never throws. A run waits only while no child is ready; its deadline begins after that. */
  run(request: RunRequest, handlers: RunHandlers): RunHandle;
  /** Starts a child if there is none: a run is about to come. */
  warm(): void;
  stats(): PoolStats;
  /** Takes no more runs from now on; stops once those that it has taken have ended. Resolves then. */
  retire(): Promise<void>;
  /** Aborts all runs, waits up to `graceMs` for them, then kills the children. */
  stop(graceMs: number): Promise<void>;
}

/** Most milliseconds between two checks of busy children. */
const watchMs = 200;
/** Checks within the time after which a silent child is killed. */
const watchesPerStall = 5;

/**
 * Starts the first child and waits for it. Rejects with the loader's SkillLoadError (one sentence
 * that names the file and the fault) when the skills do not load.
 */
export async function startExecutorPool(options: PoolOptions): Promise<ExecutorPool> {
  const pool = new ChildPool(readPoolOptions(options));
  await pool.start();
  return pool;
}

export class ChildPool implements ExecutorPool {
  readonly #settings: PoolSettings;
  readonly #processes: ProcessPool;
  readonly #watch: Watch;
  readonly #idleTimer: IdleTimer;
  readonly #waiting = new Set<PoolRun>();
  /** The waiting runs that must be alone. */
  readonly #waitingAlone = new Set<PoolRun>();
  /** The runs for which a child is ready and `confirmStart` has not answered. */
  readonly #unpermitted = new Set<PoolRun>();
  #inFlight = 0;
  #stopping: Promise<void> | undefined;
  #isRetired = false;
  /** Resolved when the pool has stopped. */
  readonly #stopped = Promise.withResolvers<void>();
  /** Called when the last run has ended, while the pool is stopping. */
  #onAllEnded: (() => void) | undefined;
  definitions: readonly LoadedSkill[] = [];
  leftOut: readonly LeftOutSkill[] = [];
  files: FoundSkills['files'] = new Map();
  failing: FoundSkills['failing'] = new Set();

  constructor(settings: PoolSettings) {
    const { clock, stallMs } = settings;
    const processes = new ProcessPool(settings, () => this.#assignWaiting());
    this.#settings = settings;
    this.#processes = processes;
    this.#watch = new Watch(clock, Math.min(watchMs, stallMs / watchesPerStall), (wasAbsent) =>
      processes.watch(wasAbsent),
    );
    this.#idleTimer = new IdleTimer(clock, () => this.#onIdle());
  }

  /** Starts the first child and waits for it. */
  async start(): Promise<void> {
    const { skills, leftOut, files, failing } = await this.#processes.start();
    this.definitions = skills;
    this.leftOut = leftOut;
    this.files = files;
    this.failing = failing;
    this.#awaitIdle(this.#settings.unusedMs);
  }

  run(request: RunRequest, handlers: RunHandlers): RunHandle {
    const run = new PoolRun(this, request, handlers);
    if (this.#stopping !== undefined || this.#isRetired) return run.refuse();
    this.#inFlight += 1;
    this.#processes.grow();
    const mayTake = !request.alone && !run.needsPermission && this.#waiting.size === 0;
    const executor = mayTake ? this.#processes.choose() : undefined;
    if (executor === undefined) this.#enqueue(run);
    else this.#give(executor, run);
    return run;
  }

  /** A run is about to be settled. */
  onEnd({ reserved }: PoolRun): void {
    if (reserved !== undefined) this.#processes.release(reserved);
    this.#inFlight -= 1;
    if (this.#inFlight > 0) return;
    this.#awaitIdle(this.#settings.idleMs);
    this.#onAllEnded?.();
    if (this.#isRetired) void this.stop(0);
  }

  warm(): void {
    if (this.#stopping !== undefined || this.#isRetired) return;
    if (this.#processes.grow()) this.#awaitIdle(this.#settings.unusedMs);
  }

  /** Ends the children after `ms` without a run. A child at a breakpoint stays, with what its author looks at. */
  #awaitIdle(ms: number | null): void {
    if (ms !== null && this.#settings.inspectPort === null) this.#idleTimer.begin(ms);
  }

  #onIdle(): void {
    if (this.#inFlight > 0) return;
    // Starts that fail go on, so that /health tells when they succeed again.
    if (this.#processes.counts().failedStarts > 0) this.#awaitIdle(this.#settings.unusedMs);
    else this.#processes.empty();
  }

  retire(): Promise<void> {
    this.#isRetired = true;
    if (this.#inFlight === 0) void this.stop(0);
    else if (this.#waitingRuns() === 0) this.#processes.empty();
    return this.#stopped.promise;
  }

  #enqueue(run: PoolRun): void {
    run.since ??= this.#settings.clock.monotonic();
    (run.request.alone ? this.#waitingAlone : this.#waiting).add(run);
    this.#assignWaiting();
  }

  /** Gives waiting runs to children that can take them. */
  #assignWaiting(): void {
    for (const run of this.#waiting) {
      const executor = this.#processes.choose();
      if (executor === undefined) break;
      this.#waiting.delete(run);
      this.#give(executor, run);
    }
    for (const run of this.#waitingAlone) {
      const executor = this.#processes.reserve(this.#waitingAlone.size);
      if (executor === undefined) break;
      this.#waitingAlone.delete(run);
      run.reserved = executor;
      this.#give(executor, run);
    }
  }

  #give(executor: Executor, run: PoolRun): void {
    if (run.needsPermission) {
      void this.#giveIfPermitted(executor, run);
      return;
    }
    this.#watch.begin();
    run.begin(executor);
  }

  async #giveIfPermitted(executor: Executor, run: PoolRun): Promise<void> {
    this.#unpermitted.add(run);
    const isPermitted = await run.handlers.confirmStart?.();
    // It was aborted meanwhile.
    if (!this.#unpermitted.delete(run)) return;
    run.needsPermission = false;
    if (!isPermitted) run.settle({ kind: 'aborted' });
    else if (run.reserved !== undefined && executor.isReady) this.#give(executor, run);
    else {
      // Another child may be the better one by now, or that one may have ended.
      if (run.reserved !== undefined) this.#processes.release(run.reserved);
      run.reserved = undefined;
      this.#enqueue(run);
    }
  }

  /** Ends a run that no child has taken. */
  withdraw(run: PoolRun): void {
    for (const runs of [this.#waiting, this.#waitingAlone, this.#unpermitted]) {
      if (runs.delete(run)) run.settle({ kind: 'aborted' });
    }
  }

  #waitingRuns(): number {
    return this.#waiting.size + this.#waitingAlone.size + this.#unpermitted.size;
  }

  stats(): PoolStats {
    const { ready, starting, deaths, failedStarts } = this.#processes.counts();
    const [first] = this.#waiting;
    const [firstAlone] = this.#waitingAlone;
    const now = this.#settings.clock.monotonic();
    return {
      executors: ready,
      starting,
      inFlight: this.#inFlight,
      waiting: this.#waitingRuns(),
      waitedMs: now - Math.min(first?.since ?? now, firstAlone?.since ?? now),
      deaths,
      failedStarts,
    };
  }

  stop(graceMs: number): Promise<void> {
    this.#stopping ??= this.#stopAll(graceMs).finally(this.#stopped.resolve);
    return this.#stopping;
  }

  async #stopAll(graceMs: number): Promise<void> {
    for (const runs of [this.#waiting, this.#waitingAlone, this.#unpermitted]) {
      for (const run of runs) this.withdraw(run);
    }
    this.#processes.abortAll('the platform is stopping');
    if (this.#inFlight > 0) {
      const allEnded = Promise.withResolvers<void>();
      this.#onAllEnded = allEnded.resolve;
      await withDeadline(allEnded.promise, graceMs);
    }
    this.#watch.stop();
    this.#idleTimer.stop();
    await this.#processes.stop();
  }
}
