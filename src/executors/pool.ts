/**
 * The pool of executors: takes runs, assigns each to a child, and reports its outcome. Promises exactly
 * one outcome for every run, and that no child outlives the pool or the process that made it. While
 * nothing runs, its only timer is the one that shrinks it. Never runs skill code in this process.
 */
import type { Clock } from '../kernel/clock.ts';
import type { LeftOutSkill } from '../skills/sources/load-error.ts';
import type { LoadedSkill } from '../skills/sources/modules.ts';
import type { AcceptedRun } from './active-run.ts';
import type { Executor } from './executor.ts';
import { type PoolOptions, readPoolOptions } from './pool-options.ts';
import { createProcessPool } from './process-pool.ts';
import type { RunHandle, RunHandlers, RunOutcome, RunRequest } from './run.ts';

export interface PoolStats {
  /** Ready children, including the spare. */
  readonly executors: number;
  readonly starting: number;
  /** Runs without an outcome, including waiting ones. */
  readonly inFlight: number;
  /** Runs that no child has taken yet. */
  readonly waiting: number;
  /** Children lost to a fault since the start. */
  readonly deaths: number;
  /** Starts that have failed in a row; above 2 the pool waits between them. */
  readonly failedStarts: number;
}

export interface ExecutorPool {
  /** The skills that the first child found, in the order of the files. */
  readonly definitions: readonly LoadedSkill[];
  /** What it left out, because a SKILL.md breaks a rule. */
  readonly leftOut: readonly LeftOutSkill[];
  /** Never throws. A run waits only while no child is ready; its deadline begins after that. */
  run(request: RunRequest, handlers: RunHandlers): RunHandle;
  stats(): PoolStats;
  /** Aborts all runs, waits up to `graceMs` for them, then kills the children. */
  stop(graceMs: number): Promise<void>;
}

/** Most milliseconds between two checks of busy children. */
const WATCH_MS = 200;
/** Checks within the time after which a silent child is killed. */
const WATCHES_PER_STALL = 5;

/** A run that waits for a child. */
interface Waiting {
  readonly accepted: AcceptedRun;
  begin(abort: (reason: string) => void): void;
}

/**
 * Starts the first child and waits for it. Rejects with the loader's SkillLoadError (one sentence
 * that names the file and the fault) when the skills do not load.
 */
export async function startExecutorPool(options: PoolOptions): Promise<ExecutorPool> {
  const settings = readPoolOptions(options);
  const { clock, idleMs, stallMs } = settings;
  const waiting = new Set<Waiting>();
  const waitingAlone = new Set<Waiting>();
  const ended = createSignal();
  let inFlight = 0;
  let stopping: Promise<void> | undefined;

  const processes = createProcessPool(settings, assignWaiting);
  const watch = createWatch(
    clock,
    Math.min(WATCH_MS, stallMs / WATCHES_PER_STALL),
    processes.watch,
  );
  const idleTimer = createIdleTimer(clock, idleMs, () => {
    if (inFlight === 0 && settings.inspectPort === null) processes.shrink();
  });
  const { skills: definitions, leftOut } = await processes.start();

  function onEnd(): void {
    inFlight -= 1;
    if (inFlight > 0) return;
    idleTimer.begin();
    ended.notify();
  }

  function assign(executor: Executor, accepted: AcceptedRun): (reason: string) => void {
    watch.begin();
    return executor.run(accepted).abort;
  }

  /** Gives waiting runs to children that can take them. */
  function assignWaiting(): void {
    for (const run of waiting) {
      const executor = processes.choose();
      if (executor === undefined) break;
      waiting.delete(run);
      run.begin(assign(executor, run.accepted));
    }
    for (const run of waitingAlone) {
      const executor = processes.reserve(waitingAlone.size);
      if (executor === undefined) break;
      waitingAlone.delete(run);
      const settle = (outcome: RunOutcome): void => {
        processes.release(executor);
        run.accepted.settle(outcome);
      };
      run.begin(assign(executor, { ...run.accepted, settle }));
    }
  }

  /** Puts the run into a queue; returns the function that aborts it. */
  function wait(accepted: AcceptedRun): (reason: string) => void {
    const queue = accepted.request.alone === true ? waitingAlone : waiting;
    let abort = (_reason: string): void => {
      if (queue.delete(run)) accepted.settle({ kind: 'aborted' });
    };
    const run: Waiting = {
      accepted,
      begin(abortRun) {
        abort = abortRun;
      },
    };
    queue.add(run);
    assignWaiting();
    return (reason) => abort(reason);
  }

  async function stop(graceMs: number): Promise<void> {
    for (const queue of [waiting, waitingAlone]) {
      for (const { accepted } of queue) accepted.settle({ kind: 'aborted' });
      queue.clear();
    }
    processes.abortAll('the platform is stopping');
    if (inFlight > 0) await ended.wait(graceMs);
    watch.stop();
    idleTimer.stop();
    await processes.stop();
  }

  return {
    definitions,
    leftOut,

    run(request, handlers) {
      const { promise, resolve } = Promise.withResolvers<RunOutcome>();
      if (stopping !== undefined) {
        resolve({ kind: 'aborted' });
        return { outcome: promise, abort() {} };
      }
      inFlight += 1;
      const settle = (outcome: RunOutcome): void => {
        onEnd();
        resolve(outcome);
      };
      const accepted: AcceptedRun = { request, handlers, settle };
      processes.grow();
      const executor = request.alone === true || waiting.size > 0 ? undefined : processes.choose();
      const abort = executor === undefined ? wait(accepted) : assign(executor, accepted);
      return { outcome: promise, abort };
    },

    stats() {
      const { ready, starting, deaths, failedStarts } = processes.counts();
      return {
        executors: ready,
        starting,
        inFlight,
        waiting: waiting.size + waitingAlone.size,
        deaths,
        failedStarts,
      };
    },

    stop(graceMs) {
      stopping ??= stop(graceMs);
      return stopping;
    },
  };
}

/** Calls `look` every `ms` until it returns false. */
function createWatch(
  clock: Clock,
  ms: number,
  look: (wasAbsent: boolean) => boolean,
): { begin(): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  let dueAt = 0;
  const schedule = (): void => {
    dueAt = clock.monotonic() + ms;
    timer = setTimeout(() => {
      // This process itself was blocked, so the children's silence is not their fault.
      const wasAbsent = clock.monotonic() - dueAt > ms;
      // Messages that the children have already sent are read first.
      setImmediate(() => {
        if (timer === undefined) return;
        timer = undefined;
        if (look(wasAbsent)) schedule();
      });
    }, ms);
  };
  return {
    begin() {
      if (timer === undefined) schedule();
    },
    stop() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}

/** Calls `onIdle` once `begin` has not been called for `ms`. Calling `begin` often is cheap. */
function createIdleTimer(
  clock: Clock,
  ms: number,
  onIdle: () => void,
): { begin(): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  let since = 0;
  const schedule = (delay: number): void => {
    timer = setTimeout(() => {
      timer = undefined;
      const left = since + ms - clock.monotonic();
      if (left > 1) schedule(left);
      else onIdle();
    }, delay).unref();
  };
  return {
    begin() {
      since = clock.monotonic();
      if (timer === undefined) schedule(ms);
    },
    stop() {
      clearTimeout(timer);
    },
  };
}

/** `wait` resolves at the next `notify`, or after its time. */
function createSignal(): { notify(): void; wait(ms: number): Promise<void> } {
  let wake: (() => void) | undefined;
  return {
    notify() {
      wake?.();
    },
    wait(ms) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
      return promise;
    },
  };
}
