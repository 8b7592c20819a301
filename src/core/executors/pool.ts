/**
 * The pool of executors: takes runs, assigns each to a child, and reports its outcome. Promises exactly
 * one outcome for every run, and that no child outlives the pool or the process that made it. While nothing runs, its
 * only timer is the one that ends its children; the next run starts one. Never runs skill code in this process.
 */
import { withDeadline } from '../../kernel/with-deadline.ts';
import type { LeftOutSkill } from '../skills/sources/load-error.ts';
import type { LoadedSkill } from '../skills/sources/modules.ts';
import type { AcceptedRun } from './active-run.ts';
import type { Executor } from './executor.ts';
import type { FoundSkills } from './loading.ts';
import { type PoolOptions, type PoolSettings, readPoolOptions } from './pool-options.ts';
import { createIdleTimer, createWatch, type PoolTimer } from './pool-timers.ts';
import { createProcessPool, type ProcessPool } from './process-pool.ts';
import type { RunControls, RunHandle, RunHandlers, RunOutcome, RunRequest } from './run.ts';

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

export interface ExecutorPool {
  /** The skills that the first child found, in the order of the files. */
  readonly definitions: readonly LoadedSkill[];
  /** What it left out: a SKILL.md that breaks a rule, a folder that is too deep. */
  readonly leftOut: readonly LeftOutSkill[];
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

/** A run that waits for a child, and then for the answer of its `mayBegin`. */
interface Waiting {
  readonly accepted: AcceptedRun;
  readonly since: number;
  mayBegin: RunRequest['mayBegin'];
  begin(controls: RunControls): void;
}

interface State {
  readonly settings: PoolSettings;
  readonly processes: ProcessPool;
  readonly watch: PoolTimer;
  readonly idleTimer: PoolTimer<[ms: number]>;
  readonly waiting: Set<Waiting>;
  /** The waiting runs that must be alone. */
  readonly waitingAlone: Set<Waiting>;
  /** The runs for which a child is ready and `mayBegin` has not answered, each with what settles it. */
  readonly unpermitted: Map<Waiting, AcceptedRun>;
  inFlight: number;
  stopping: Promise<void> | undefined;
  isRetired: boolean;
  /** Resolved when the pool has stopped. */
  readonly stopped: PromiseWithResolvers<void>;
  /** Called when the last run has ended, while the pool is stopping. */
  onAllEnded: (() => void) | undefined;
}

/**
 * Starts the first child and waits for it. Rejects with the loader's SkillLoadError (one sentence
 * that names the file and the fault) when the skills do not load.
 */
export async function startExecutorPool(options: PoolOptions): Promise<ExecutorPool> {
  const settings = readPoolOptions(options);
  const { clock, stallMs } = settings;
  const processes = createProcessPool(settings, () => assignWaiting(state));
  const state: State = {
    settings,
    processes,
    watch: createWatch(clock, Math.min(watchMs, stallMs / watchesPerStall), processes.watch),
    idleTimer: createIdleTimer(clock, () => onIdle(state)),
    waiting: new Set(),
    waitingAlone: new Set(),
    unpermitted: new Map(),
    inFlight: 0,
    stopping: undefined,
    isRetired: false,
    stopped: Promise.withResolvers(),
    onAllEnded: undefined,
  };
  const { skills, leftOut, files, failing } = await processes.start();
  awaitIdle(state, settings.unusedMs);
  return {
    definitions: skills,
    leftOut,
    files,
    failing,
    run: (request, handlers) => run(state, request, handlers),
    warm: () => warm(state),
    stats: () => stats(state),
    retire: () => retire(state),
    stop: (graceMs) => stopOnce(state, graceMs),
  };
}

function run(state: State, request: RunRequest, handlers: RunHandlers): RunHandle {
  const { promise, resolve } = Promise.withResolvers<RunOutcome>();
  if (state.stopping !== undefined || state.isRetired) {
    resolve({ kind: 'aborted' });
    return { outcome: promise, abort() {}, suspend() {} };
  }
  state.inFlight += 1;
  const settle = (outcome: RunOutcome): void => {
    onEnd(state);
    resolve(outcome);
  };
  const accepted: AcceptedRun = { request, handlers, settle };
  state.processes.grow();
  const mayTake = !request.alone && !request.mayBegin && state.waiting.size === 0;
  const executor = mayTake ? state.processes.choose() : undefined;
  const controls =
    executor === undefined ? wait(state, accepted) : assign(state, executor, accepted);
  return { outcome: promise, ...controls };
}

function onEnd(state: State): void {
  state.inFlight -= 1;
  if (state.inFlight > 0) return;
  awaitIdle(state, state.settings.idleMs);
  state.onAllEnded?.();
  if (state.isRetired) void stopOnce(state, 0);
}

function warm(state: State): void {
  if (state.stopping !== undefined || state.isRetired) return;
  if (state.processes.grow()) awaitIdle(state, state.settings.unusedMs);
}

/** Ends the children after `ms` without a run. A child at a breakpoint stays, with what its author looks at. */
function awaitIdle({ settings, idleTimer }: State, ms: number | null): void {
  if (ms !== null && settings.inspectPort === null) idleTimer.begin(ms);
}

function onIdle(state: State): void {
  const { processes, settings, inFlight } = state;
  if (inFlight > 0) return;
  // Starts that fail go on, so that /health tells when they succeed again.
  if (processes.counts().failedStarts > 0) awaitIdle(state, settings.unusedMs);
  else processes.empty();
}

function retire(state: State): Promise<void> {
  state.isRetired = true;
  if (state.inFlight === 0) void stopOnce(state, 0);
  else if (waitingRuns(state) === 0) state.processes.empty();
  return state.stopped.promise;
}

function assign(state: State, executor: Executor, accepted: AcceptedRun): RunControls {
  state.watch.begin();
  return executor.run(accepted);
}

/** Gives waiting runs to children that can take them. */
function assignWaiting(state: State): void {
  const { waiting, waitingAlone, processes } = state;
  for (const run of waiting) {
    const executor = processes.choose();
    if (executor === undefined) break;
    waiting.delete(run);
    give(state, executor, run, run.accepted);
  }
  for (const run of waitingAlone) {
    const executor = processes.reserve(waitingAlone.size);
    if (executor === undefined) break;
    waitingAlone.delete(run);
    const settle = (outcome: RunOutcome): void => {
      processes.release(executor);
      run.accepted.settle(outcome);
    };
    give(state, executor, run, { ...run.accepted, settle });
  }
}

function give(state: State, executor: Executor, run: Waiting, accepted: AcceptedRun): void {
  const { mayBegin } = run;
  if (mayBegin === undefined) run.begin(assign(state, executor, accepted));
  else void giveIfPermitted(state, executor, run, accepted, mayBegin());
}

async function giveIfPermitted(
  state: State,
  executor: Executor,
  run: Waiting,
  accepted: AcceptedRun,
  permission: Promise<boolean>,
): Promise<void> {
  const { unpermitted, processes } = state;
  unpermitted.set(run, accepted);
  const isPermitted = await permission;
  // It was aborted meanwhile.
  if (!unpermitted.delete(run)) return;
  if (!isPermitted) accepted.settle({ kind: 'aborted' });
  else if (accepted.request.alone && executor.isReady) {
    run.begin(assign(state, executor, accepted));
  } else {
    // Another child may be the better one by now, or that one may have ended.
    processes.release(executor);
    run.mayBegin = undefined;
    queueFor(state, accepted).add(run);
    assignWaiting(state);
  }
}

function wait(state: State, accepted: AcceptedRun): RunControls {
  const queue = queueFor(state, accepted);
  let controls: RunControls = {
    abort() {
      const settling = queue.delete(run) ? accepted : state.unpermitted.get(run);
      state.unpermitted.delete(run);
      settling?.settle({ kind: 'aborted' });
    },
    suspend() {},
  };
  const run: Waiting = {
    accepted,
    since: state.settings.clock.monotonic(),
    mayBegin: accepted.request.mayBegin,
    begin(given) {
      controls = given;
    },
  };
  queue.add(run);
  assignWaiting(state);
  return { abort: (reason) => controls.abort(reason), suspend: () => controls.suspend() };
}

function queueFor({ waiting, waitingAlone }: State, { request }: AcceptedRun): Set<Waiting> {
  return request.alone === true ? waitingAlone : waiting;
}

function waitingRuns({ waiting, waitingAlone, unpermitted }: State): number {
  return waiting.size + waitingAlone.size + unpermitted.size;
}

function stats(state: State): PoolStats {
  const { processes, settings, inFlight, waiting, waitingAlone } = state;
  const { ready, starting, deaths, failedStarts } = processes.counts();
  const [first] = waiting;
  const [firstAlone] = waitingAlone;
  const now = settings.clock.monotonic();
  return {
    executors: ready,
    starting,
    inFlight,
    waiting: waitingRuns(state),
    waitedMs: now - Math.min(first?.since ?? now, firstAlone?.since ?? now),
    deaths,
    failedStarts,
  };
}

function stopOnce(state: State, graceMs: number): Promise<void> {
  state.stopping ??= stop(state, graceMs).finally(state.stopped.resolve);
  return state.stopping;
}

async function stop(state: State, graceMs: number): Promise<void> {
  for (const queue of [state.waiting, state.waitingAlone]) {
    for (const { accepted } of queue) accepted.settle({ kind: 'aborted' });
    queue.clear();
  }
  for (const accepted of state.unpermitted.values()) accepted.settle({ kind: 'aborted' });
  state.unpermitted.clear();
  state.processes.abortAll('the platform is stopping');
  if (state.inFlight > 0) {
    const allEnded = Promise.withResolvers<void>();
    state.onAllEnded = allEnded.resolve;
    await withDeadline(allEnded.promise, graceMs);
  }
  state.watch.stop();
  state.idleTimer.stop();
  await state.processes.stop();
}
