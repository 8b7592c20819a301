/**
 * The child processes of a pool: how many there are, and the role of each. Grown, it keeps one shared child
 * and one unused spare; the spare becomes shared when all shared children are busy, up to `size` of them.
 * Before and after that it starts none. A run that asks to be alone gets a child that has never run anything.
 * Knows nothing of runs.
 */
import { bind } from '../../kernel/bind.ts';
import { startOrphanGuard } from '../../kernel/orphan-guard.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';
import {
  countOf,
  findChild,
  fork,
  isStarting,
  type Processes,
  replenish,
  sharedWanted,
  sparesWanted,
} from './child-starts.ts';
import type { Executor } from './executor.ts';
import type { FoundSkills } from './loading.ts';
import type { PoolSettings } from './pool-options.ts';

/** Milliseconds for which `stop` waits for killed children to exit. */
const exitWaitMs = 5_000;
/** Load added to a doubtful child, so that it is chosen only when every child is doubtful. */
const doubtWeight = 1_000_000;
/**
 * Milliseconds for which the event loop of a busy child does not answer. Runs that wait for input and output
 * take a child a fraction of this; runs that compute take it as long as they compute.
 */
const busyMs = 50;

export type ProcessPool = ReturnType<typeof createProcessPool>;

/** `onReady` is called when `choose` or `reserve` may have a child that they did not have before. */
export function createProcessPool(settings: PoolSettings, onReady: () => void) {
  const processes: Processes = {
    settings,
    onReady,
    children: new Set(),
    first: Promise.withResolvers(),
    emptied: Promise.withResolvers(),
    guard: undefined,
    snapshot: undefined,
    isGrown: false,
    shared: 1,
    isStopped: false,
    wantedAlone: 0,
    deaths: 0,
    failedStarts: 0,
    backoffs: 0,
    retryTimer: undefined,
  };
  const verbs = { start, grow, empty, choose, reserve, release, watch, abortAll, counts, stop };
  return bind(processes, verbs);
}

/** Starts the first child; rejects when it does not become ready. */
async function start(processes: Processes): Promise<FoundSkills> {
  processes.guard = startOrphanGuard('executor-orphan-guard', (reason) =>
    processes.settings.log.warn({ reason }, 'blocked executors are not guarded: no shell'),
  );
  fork(processes, 'shared', true);
  const { giveUp } = processes.settings;
  const onGiveUp = () => {
    for (const { executor } of processes.children) executor.end('stopped');
  };
  giveUp?.addEventListener('abort', onGiveUp);
  try {
    return await processes.first.promise;
  } catch (error) {
    await processes.guard.stop();
    processes.snapshot?.close();
    throw error;
  } finally {
    giveUp?.removeEventListener('abort', onGiveUp);
  }
}

/** Starts the children of a grown pool, without waiting for them; false when it is grown already. */
function grow(processes: Processes): boolean {
  if (processes.isGrown) return false;
  processes.isGrown = true;
  replenish(processes);
  return true;
}

/** Ends the children without runs, until the pool grows again. */
function empty(processes: Processes): void {
  processes.isGrown = false;
  processes.shared = 1;
  processes.wantedAlone = 0;
  for (const child of processes.children) {
    if (child.executor.inFlight > 0) continue;
    // It would count as one that can be waited for.
    child.role = 'draining';
    child.executor.end('retired');
  }
}

/** The child for the next run; undefined while none is ready. */
function choose({ children }: Processes): Executor | undefined {
  let best: Executor | undefined;
  let bestLoad = Number.POSITIVE_INFINITY;
  for (const { role, executor } of children) {
    if (role !== 'shared' || !executor.isReady) continue;
    const load = executor.inFlight + (executor.isDoubtful() ? doubtWeight : 0);
    if (load >= bestLoad) continue;
    best = executor;
    bestLoad = load;
  }
  return best;
}

/**
 * A child that has run nothing, for one run alone; undefined while there is none. The caller releases
 * it after the run. `demand` is how many runs wait for one, so the pool starts that many spares.
 */
function reserve(processes: Processes, demand: number): Executor | undefined {
  const { settings } = processes;
  const free = settings.size - countOf(processes, 'exclusive');
  processes.wantedAlone = Math.max(0, Math.min(demand, free));
  replenish(processes);
  if (free <= 0) return undefined;
  const spare = findChild(
    processes,
    ({ role, executor }) => role === 'spare' && executor.isReady && executor.isFresh,
  );
  if (spare === undefined) return undefined;
  spare.role = 'exclusive';
  processes.wantedAlone -= 1;
  return spare.executor;
}

function release(processes: Processes, executor: Executor): void {
  const child = findChild(processes, (candidate) => candidate.executor === executor);
  if (child === undefined || child.role !== 'exclusive') return;
  if (countOf(processes, 'shared') < sharedWanted(processes)) child.role = 'shared';
  else executor.end('retired');
  if (countOf(processes, 'spare') > sparesWanted(processes)) {
    findChild(processes, ({ role }) => role === 'spare')?.executor.end('retired');
  }
  processes.onReady();
}

/** Calls `watch` of all children; false when no child needs another call. */
function watch(processes: Processes, wasAbsent: boolean): boolean {
  if (!wasAbsent) shareMore(processes);
  let isNeeded = false;
  for (const { executor } of processes.children) if (executor.watch(wasAbsent)) isNeeded = true;
  return isNeeded;
}

/** Adds a shared child when all are busy. The number stays, because the same runs will come again. */
function shareMore(processes: Processes): void {
  const { children, settings } = processes;
  if (!processes.isGrown || processes.shared >= settings.size) return;
  for (const { role, executor } of children) {
    if (role === 'shared' && executor.silentMs() < busyMs) return;
  }
  processes.shared += 1;
  replenish(processes);
  processes.onReady();
}

function abortAll({ children }: Processes, reason: string): void {
  for (const { executor } of children) executor.abortAll(reason);
}

function counts({ children, deaths, failedStarts }: Processes) {
  const starting = [...children].filter(isStarting).length;
  const ready = [...children].filter(({ executor }) => executor.isReady).length;
  return { ready, starting, deaths, failedStarts };
}

/** Kills all children; resolves when they are gone. */
async function stop(processes: Processes): Promise<void> {
  const { children, emptied } = processes;
  processes.isStopped = true;
  clearTimeout(processes.retryTimer);
  for (const { executor } of children) executor.end('stopped');
  if (children.size > 0) await withDeadline(emptied.promise, exitWaitMs);
  await processes.guard?.stop();
  processes.snapshot?.close();
}
