/**
 * The children of a pool: how many there are, what each is for, and who takes the place of one that
 * died. Grown, it keeps `size` children for everybody and one fresh spare; shrunk, one child. A
 * child that serves a run on its own has never run anything before. Knows nothing of runs.
 */
import { SkillLoadError } from '../skills/sources/load-error.ts';
import { isFault } from './death-attribution.ts';
import { type Executor, startExecutor } from './executor.ts';
import { type Generation, openGeneration } from './generation.ts';
import type { FoundSkills } from './loading.ts';
import { type OrphanGuard, startOrphanGuard } from './orphan-guard.ts';
import type { PoolSettings } from './pool-options.ts';

/** Failed starts in a row before the next one waits. */
const PATIENCE = 3;
/** Milliseconds before a start after PATIENCE failed ones; doubles up to BACKOFF_MS_MAX. */
const BACKOFF_MS = 100;
const BACKOFF_MS_MAX = 10_000;
/** Milliseconds to wait at the stop for killed children to be gone. */
const EXIT_WAIT_MS = 5_000;

/** Whom a child serves: everybody, nobody yet, one run that must be alone, nobody any more. */
type Role = 'shared' | 'spare' | 'alone' | 'leaving';

interface PooledChild {
  role: Role;
  readonly executor: Executor;
  /** The one that checked the skills and told them. */
  readonly isFirst: boolean;
  /** Where it waits for a debugger; null where it does not. */
  readonly port: number | null;
}

export interface ProcessPool {
  /** Starts the first child; rejects when it does not become ready. */
  start(): Promise<FoundSkills>;
  /** From now on as many children as the pool may have, not awaited. */
  grow(): void;
  /** One child is enough; the freshest stays. To be called while nothing runs. */
  shrink(): void;
  /** The child for the next run; undefined while none is ready. */
  choose(): Executor | undefined;
  /**
   * A fresh child for one run alone, to be released after it; undefined while there is none. As many
   * runs as `demand` says want one, so that more than one may be started.
   */
  reserve(demand: number): Executor | undefined;
  release(executor: Executor): void;
  /** Looks after all children; false when none needs to be looked after. */
  watch(wasAbsent: boolean): boolean;
  abortAll(reason: string): void;
  counts(): { ready: number; starting: number; deaths: number; failedStarts: number };
  /** Kills all children; resolves when they are gone. */
  stop(): Promise<void>;
}

/** `onReady` is called when choose or reserve may have something that they had not before. */
export function createProcessPool(settings: PoolSettings, onReady: () => void): ProcessPool {
  const { size, log, clock, inspectPort } = settings;
  /** A debugger is attached to one child for long, so none is replaced without need. */
  const isDebugged = inspectPort !== null;
  const sparesMin = isDebugged ? 0 : 1;
  const children = new Set<PooledChild>();
  const first = Promise.withResolvers<FoundSkills>();
  const emptied = Promise.withResolvers<void>();
  let guard: OrphanGuard | undefined;
  let generation: Generation | undefined;
  let isGrown = false;
  let isStopped = false;
  /** Spares to have ready: one, and for a while more when runs want to be alone. */
  let spares = sparesMin;
  let deaths = 0;
  let failedStarts = 0;
  /** Pauses since a start succeeded. */
  let pauses = 0;
  let retryTimer: NodeJS.Timeout | undefined;

  function fork(role: Role, isFirst: boolean): void {
    try {
      add(role, isFirst);
    } catch (error) {
      const failure = error as Error;
      // It failed before it began, so no end of it will call for the next.
      failedStarts = Math.max(failedStarts, PATIENCE - 1);
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
          pauses = 0;
          if (isFirst) {
            first.resolve(found);
            if (!isDebugged) fork('shared', false);
          } else if (!isDebugged) retireFirst();
          keepUp();
          onReady();
        },
        onLeaving() {
          child.role = 'leaving';
          keepUp();
        },
        onGone(death, startFailure) {
          children.delete(child);
          if (executor.pid !== undefined) guard?.remove(executor.pid);
          if (isFault(death)) deaths += 1;
          if (isFirst && startFailure !== undefined) refuse(startFailure);
          else if (isFault(death) && startFailure !== undefined) onFailedStart(startFailure);
          keepUp();
          if (isStopped && children.size === 0) emptied.resolve();
        },
        mayDrain: () => countOf('leaving') < size,
      },
    );
    const child: PooledChild = { role, executor, isFirst, port };
    children.add(child);
    if (executor.pid !== undefined) guard?.add(executor.pid);
  }

  /** The lowest that no child has; null where there is no debugging. */
  function freePort(): number | null {
    if (inspectPort === null) return null;
    let port = inspectPort;
    while (some((child) => child.port === port)) port += 1;
    return port;
  }

  /** Checking the schemas has made the first child large: one that only loaded takes its place. */
  function retireFirst(): void {
    const checked = find((child) => child.isFirst && child.role === 'shared');
    if (checked?.executor.inFlight === 0) checked.executor.end('retired');
  }

  /** Nothing is retried for the first child: a typo is to be seen, not waited for. */
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
    if (failedStarts < PATIENCE || retryTimer !== undefined || isStopped) return;
    const ms = Math.min(BACKOFF_MS * 2 ** pauses, BACKOFF_MS_MAX);
    pauses += 1;
    log.error({ error: failure.message, failedStarts, ms }, 'executors do not start');
    retryTimer = setTimeout(() => {
      retryTimer = undefined;
      keepUp();
    }, ms);
  }

  /** Once starts have failed, the next ones come one by one. */
  function mayFork(): boolean {
    if (isStopped || retryTimer !== undefined) return false;
    return failedStarts < PATIENCE || !some((child) => isStarting(child));
  }

  /** Fills the places that are empty: the spare moves up, new children are started. */
  function keepUp(): void {
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
      keepUp();
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
      const places = size - countOf('alone');
      spares = Math.max(sparesMin, Math.min(demand, places));
      keepUp();
      if (places <= 0) return undefined;
      const spare = find(
        ({ role, executor }) => role === 'spare' && executor.isReady && executor.isFresh,
      );
      if (spare === undefined) return undefined;
      spare.role = 'alone';
      return spare.executor;
    },

    release(executor) {
      const child = find((candidate) => candidate.executor === executor);
      if (child === undefined || child.role !== 'alone') return;
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

/** A doubtful child is chosen only when all are. */
const DOUBT_WEIGHT = 1_000_000;

function isStarting({ role, executor }: PooledChild): boolean {
  return role !== 'leaving' && !executor.isReady;
}

async function withDeadline(promise: Promise<void>, ms: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, ms);
  await Promise.race([promise, late.promise]);
  clearTimeout(timer);
}
