/**
 * The child processes of a pool: how many there are, the role of each, and the replacement of those that
 * die. Grown, it keeps `size` shared children and one unused spare; shrunk, it keeps one child. A run
 * that asks to be alone gets a child that has never run anything. Knows nothing of runs.
 */
import { SkillLoadError } from '../skills/sources/load-error.ts';
import { isFault } from './death-attribution.ts';
import { type Executor, startExecutor } from './executor.ts';
import { type Generation, openGeneration } from './generation.ts';
import type { FoundSkills } from './loading.ts';
import { type OrphanGuard, startOrphanGuard } from './orphan-guard.ts';
import type { PoolSettings } from './pool-options.ts';

/** After this many failed starts in a row the next one waits. */
const FAILED_STARTS_MAX = 3;
/** Milliseconds before the start after FAILED_STARTS_MAX failures; doubles up to BACKOFF_MS_MAX. */
const BACKOFF_MS = 100;
const BACKOFF_MS_MAX = 10_000;
/** Milliseconds for which `stop` waits for killed children to exit. */
const EXIT_WAIT_MS = 5_000;

/** A child takes any run, none yet, one run that must be alone, or no more runs. */
type Role = 'shared' | 'spare' | 'exclusive' | 'draining';

interface PooledChild {
  role: Role;
  readonly executor: Executor;
  /** It checked the skills and reported them. */
  readonly isFirst: boolean;
  /** The port on which it waits for a debugger, or null. */
  readonly port: number | null;
}

export interface ProcessPool {
  /** Starts the first child; rejects when it does not become ready. */
  start(): Promise<FoundSkills>;
  /** Starts the children of a grown pool, without waiting for them. */
  grow(): void;
  /** Ends all children but one, the spare if it is ready. Called while nothing runs. */
  shrink(): void;
  /** The child for the next run; undefined while none is ready. */
  choose(): Executor | undefined;
  /**
   * A child that has run nothing, for one run alone; undefined while there is none. The caller releases
   * it after the run. `demand` is how many runs wait for one, so the pool starts that many spares.
   */
  reserve(demand: number): Executor | undefined;
  release(executor: Executor): void;
  /** Calls `watch` of all children; false when no child needs another call. */
  watch(wasAbsent: boolean): boolean;
  abortAll(reason: string): void;
  counts(): { ready: number; starting: number; deaths: number; failedStarts: number };
  /** Kills all children; resolves when they are gone. */
  stop(): Promise<void>;
}

/** `onReady` is called when `choose` or `reserve` may have a child that they did not have before. */
export function createProcessPool(settings: PoolSettings, onReady: () => void): ProcessPool {
  const { size, log, clock, inspectPort } = settings;
  /** A debugger stays attached to one child, so no child is replaced without need. */
  const isDebugged = inspectPort !== null;
  const sparesMin = isDebugged ? 0 : 1;
  const children = new Set<PooledChild>();
  const first = Promise.withResolvers<FoundSkills>();
  const emptied = Promise.withResolvers<void>();
  let guard: OrphanGuard | undefined;
  let generation: Generation | undefined;
  let isGrown = false;
  let isStopped = false;
  /** Spares to keep ready: one, and more while runs wait to be alone. */
  let spares = sparesMin;
  let deaths = 0;
  let failedStarts = 0;
  /** Pauses since a start succeeded. */
  let backoffs = 0;
  let retryTimer: NodeJS.Timeout | undefined;

  function fork(role: Role, isFirst: boolean): void {
    try {
      add(role, isFirst);
    } catch (error) {
      const failure = error as Error;
      // There is no process whose exit would trigger the next start, so the backoff timer must.
      failedStarts = Math.max(failedStarts, FAILED_STARTS_MAX - 1);
      if (isFirst) refuse(failure);
      else onFailedStart(failure);
    }
  }

  function add(role: Role, isFirst: boolean): void {
    generation ??= openGeneration(clock);
    const port = freePort();
    const executor = startExecutor(
      settings,
      generation,
      { isFirst, inspectPort: port },
      {
        onReady(found) {
          failedStarts = 0;
          backoffs = 0;
          if (isFirst) {
            first.resolve(found);
            if (!isDebugged) fork('shared', false);
          } else if (!isDebugged) retireFirst();
          replenish();
          onReady();
        },
        onUnavailable() {
          child.role = 'draining';
          replenish();
        },
        onGone(death, startFailure) {
          children.delete(child);
          if (executor.pid !== undefined) guard?.remove(executor.pid);
          if (isFault(death)) deaths += 1;
          if (isFirst && startFailure !== undefined) refuse(startFailure);
          else if (isFault(death) && startFailure !== undefined) onFailedStart(startFailure);
          replenish();
          if (isStopped && children.size === 0) emptied.resolve();
        },
        mayDrain: () => countOf('draining') < size,
      },
    );
    const child: PooledChild = { role, executor, isFirst, port };
    children.add(child);
    if (executor.pid !== undefined) guard?.add(executor.pid);
  }

  /** The lowest port that no child has; null without debugging. */
  function freePort(): number | null {
    if (inspectPort === null) return null;
    let port = inspectPort;
    while (some((child) => child.port === port)) port += 1;
    return port;
  }

  /** Checking the schemas enlarges the first child; a child that only loaded replaces it. */
  function retireFirst(): void {
    const checked = find((child) => child.isFirst && child.role === 'shared');
    if (checked?.executor.inFlight === 0) checked.executor.end('retired');
  }

  /** The first child is not retried: the operator should see a mistake in a skill at once. */
  function refuse(failure: Error): void {
    isStopped = true;
    first.reject(failure);
  }

  function onFailedStart(failure: Error): void {
    failedStarts += 1;
    if (failure instanceof SkillLoadError) {
      log.warn(
        { file: failure.file, error: failure.message },
        'a skill ended the executor that loaded it; its runs fail for a while',
      );
      generation?.setAside(failure.file);
    }
    if (failedStarts < FAILED_STARTS_MAX || retryTimer !== undefined || isStopped) return;
    const ms = Math.min(BACKOFF_MS * 2 ** backoffs, BACKOFF_MS_MAX);
    backoffs += 1;
    log.error({ error: failure.message, failedStarts, ms }, 'executors do not start');
    retryTimer = setTimeout(() => {
      retryTimer = undefined;
      replenish();
    }, ms);
  }

  /** After failed starts, children are started one at a time. */
  function mayFork(): boolean {
    if (isStopped || retryTimer !== undefined) return false;
    return failedStarts < FAILED_STARTS_MAX || !some((child) => isStarting(child));
  }

  /** Restores the number of children: promotes the spare, then starts new children. */
  function replenish(): void {
    const wanted = isGrown ? size : 1;
    for (let shared = countOf('shared'); shared < wanted; shared++) {
      const spare = find((child) => child.role === 'spare');
      if (spare !== undefined) spare.role = 'shared';
      else if (mayFork()) fork('shared', false);
    }
    if (!isGrown) return;
    for (let spare = countOf('spare'); spare < spares; spare++) if (mayFork()) fork('spare', false);
  }

  function find(test: (child: PooledChild) => boolean): PooledChild | undefined {
    for (const child of children) if (test(child)) return child;
    return undefined;
  }

  function some(test: (child: PooledChild) => boolean): boolean {
    return find(test) !== undefined;
  }

  function countOf(role: Role): number {
    let count = 0;
    for (const child of children) if (child.role === role) count += 1;
    return count;
  }

  return {
    start() {
      guard = startOrphanGuard((reason) =>
        log.warn({ reason }, 'nothing watches over blocked executors: no shell'),
      );
      fork('shared', true);
      return first.promise.catch(async (error) => {
        await guard?.stop();
        generation?.close();
        throw error;
      });
    },

    grow() {
      if (isGrown) return;
      isGrown = true;
      replenish();
    },

    shrink() {
      isGrown = false;
      const isIdle = ({ executor }: PooledChild) => executor.isReady && executor.inFlight === 0;
      const kept =
        find((child) => child.role === 'spare' && isIdle(child)) ??
        find((child) => child.role === 'shared' && isIdle(child));
      if (kept === undefined) return;
      kept.role = 'shared';
      for (const child of children) {
        if (child !== kept && child.executor.inFlight === 0) child.executor.end('retired');
      }
    },

    choose() {
      let best: Executor | undefined;
      let bestLoad = Number.POSITIVE_INFINITY;
      for (const { role, executor } of children) {
        if (role !== 'shared' || !executor.isReady) continue;
        const load = executor.inFlight + (executor.isDoubtful() ? DOUBT_WEIGHT : 0);
        if (load >= bestLoad) continue;
        best = executor;
        bestLoad = load;
      }
      return best;
    },

    reserve(demand) {
      const free = size - countOf('exclusive');
      spares = Math.max(sparesMin, Math.min(demand, free));
      replenish();
      if (free <= 0) return undefined;
      const spare = find(
        ({ role, executor }) => role === 'spare' && executor.isReady && executor.isFresh,
      );
      if (spare === undefined) return undefined;
      spare.role = 'exclusive';
      return spare.executor;
    },

    release(executor) {
      const child = find((candidate) => candidate.executor === executor);
      if (child === undefined || child.role !== 'exclusive') return;
      if (countOf('shared') < (isGrown ? size : 1)) child.role = 'shared';
      else executor.end('retired');
      if (countOf('spare') > spares) {
        find(({ role }) => role === 'spare')?.executor.end('retired');
      }
      onReady();
    },

    watch(wasAbsent) {
      let isNeeded = false;
      for (const { executor } of children) if (executor.watch(wasAbsent)) isNeeded = true;
      return isNeeded;
    },

    abortAll(reason) {
      for (const { executor } of children) executor.abortAll(reason);
    },

    counts() {
      const starting = [...children].filter(isStarting).length;
      const ready = [...children].filter(({ executor }) => executor.isReady).length;
      return { ready, starting, deaths, failedStarts };
    },

    async stop() {
      isStopped = true;
      clearTimeout(retryTimer);
      for (const { executor } of children) executor.end('stopped');
      if (children.size > 0) await withDeadline(emptied.promise, EXIT_WAIT_MS);
      await guard?.stop();
      generation?.close();
    },
  };
}

/** Load added to a doubtful child, so that it is chosen only when every child is doubtful. */
const DOUBT_WEIGHT = 1_000_000;

function isStarting({ role, executor }: PooledChild): boolean {
  return role !== 'draining' && !executor.isReady;
}

async function withDeadline(promise: Promise<void>, ms: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, ms);
  await Promise.race([promise, late.promise]);
  clearTimeout(timer);
}
