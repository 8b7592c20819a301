/**
 * The child processes of a pool: how many there are, and the role of each. Grown, it keeps one shared child
 * and one unused spare; the spare becomes shared when all shared children are busy, up to `size` of them.
 * Before and after that it starts none. A run that asks to be alone gets a child that has never run anything.
 * Knows nothing of runs.
 */
import { OrphanGuard } from '../../kernel/orphan-guard.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';
import {
  countOf,
  findChild,
  fork,
  isStarting,
  type PooledChild,
  replenish,
  sharedWanted,
  sparesWanted,
} from './child-starts.ts';
import type { Executor } from './executor.ts';
import type { FoundSkills } from './loading.ts';
import type { PoolSettings } from './pool-options.ts';
import type { SnapshotFile } from './snapshot-file.ts';

/** Milliseconds for which `stop` waits for killed children to exit. */
const exitWaitMs = 5_000;
/** Load added to a doubtful child, so that it is chosen only when every child is doubtful. */
const doubtWeight = 1_000_000;
/**
 * Milliseconds for which the event loop of a busy child does not answer. Runs that wait for input and output
 * take a child a fraction of this; runs that compute take it as long as they compute.
 */
const busyMs = 50;

export class ProcessPool {
  readonly settings: PoolSettings;
  /** Called when `choose` or `reserve` may have a child that they did not have before. */
  readonly onReady: () => void;
  readonly children = new Set<PooledChild>();
  /** Settled when the first child is ready or has failed to start. */
  readonly first = Promise.withResolvers<FoundSkills>();
  /** Resolved when the pool is stopped and the last child is gone. */
  readonly emptied = Promise.withResolvers<void>();
  guard: OrphanGuard | undefined;
  snapshot: SnapshotFile | undefined;
  isGrown = false;
  /** Shared children of a grown pool: 1, and one more each time that those there are were all busy. */
  shared = 1;
  isStopped = false;
  /** Children that runs which must be alone wait for. */
  wantedAlone = 0;
  deaths = 0;
  failedStarts = 0;
  /** Pauses since a start succeeded. */
  backoffs = 0;
  retryTimer: NodeJS.Timeout | undefined;

  constructor(settings: PoolSettings, onReady: () => void) {
    this.settings = settings;
    this.onReady = onReady;
  }

  /** Starts the first child; rejects when it does not become ready. */
  async start(): Promise<FoundSkills> {
    this.guard = new OrphanGuard('executor-orphan-guard', (reason) =>
      this.settings.log.warn({ reason }, 'blocked executors are not guarded: no shell'),
    );
    fork(this, 'shared', true);
    const { giveUp } = this.settings;
    const onGiveUp = () => {
      for (const { executor } of this.children) executor.end('stopped');
    };
    giveUp?.addEventListener('abort', onGiveUp);
    try {
      return await this.first.promise;
    } catch (error) {
      await this.guard.stop();
      this.snapshot?.close();
      throw error;
    } finally {
      giveUp?.removeEventListener('abort', onGiveUp);
    }
  }

  /** Starts the children of a grown pool, without waiting for them; false when it is grown already. */
  grow(): boolean {
    if (this.isGrown) return false;
    this.isGrown = true;
    replenish(this);
    return true;
  }

  /** Ends the children without runs, until the pool grows again. */
  empty(): void {
    this.isGrown = false;
    this.shared = 1;
    this.wantedAlone = 0;
    for (const child of this.children) {
      if (child.executor.inFlight > 0) continue;
      // It would count as one that can be waited for.
      child.role = 'draining';
      child.executor.end('retired');
    }
  }

  /** The child for the next run; undefined while none is ready. */
  choose(): Executor | undefined {
    let best: Executor | undefined;
    let bestLoad = Number.POSITIVE_INFINITY;
    for (const { role, executor } of this.children) {
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
  reserve(demand: number): Executor | undefined {
    const free = this.settings.size - countOf(this, 'exclusive');
    this.wantedAlone = Math.max(0, Math.min(demand, free));
    replenish(this);
    if (free <= 0) return undefined;
    const spare = findChild(this, ({ role, executor }) => role === 'spare' && executor.isReady);
    if (spare === undefined) return undefined;
    spare.role = 'exclusive';
    this.wantedAlone -= 1;
    return spare.executor;
  }

  release(executor: Executor): void {
    const child = findChild(this, (candidate) => candidate.executor === executor);
    if (child === undefined || child.role !== 'exclusive') return;
    if (countOf(this, 'shared') < sharedWanted(this)) child.role = 'shared';
    else executor.end('retired');
    if (countOf(this, 'spare') > sparesWanted(this)) {
      findChild(this, ({ role }) => role === 'spare')?.executor.end('retired');
    }
    this.onReady();
  }

  /** Calls `watch` of all children; false when no child needs another call. */
  watch(wasAbsent: boolean): boolean {
    let isNeeded = false;
    for (const { executor } of this.children) if (executor.watch(wasAbsent)) isNeeded = true;
    // Answers that have arrived by then are read first. A timer may end up to a millisecond early.
    if (isNeeded) setTimeout(() => setImmediate(() => this.#shareMore()), busyMs + 1).unref();
    return isNeeded;
  }

  /** Adds a shared child when all are busy. The number stays, because the same runs will come again. */
  #shareMore(): void {
    if (!this.isGrown || this.shared >= this.settings.size) return;
    for (const { role, executor } of this.children) {
      if (role === 'shared' && executor.silentMs() < busyMs) return;
    }
    this.shared += 1;
    replenish(this);
    this.onReady();
  }

  abortAll(reason: string): void {
    for (const { executor } of this.children) executor.abortAll(reason);
  }

  counts() {
    const starting = [...this.children].filter(isStarting).length;
    const ready = [...this.children].filter(({ executor }) => executor.isReady).length;
    return { ready, starting, deaths: this.deaths, failedStarts: this.failedStarts };
  }

  /** Kills all children; resolves when they are gone. */
  async stop(): Promise<void> {
    this.isStopped = true;
    clearTimeout(this.retryTimer);
    for (const { executor } of this.children) executor.end('stopped');
    if (this.children.size > 0) await withDeadline(this.emptied.promise, exitWaitMs);
    await this.guard?.stop();
    this.snapshot?.close();
  }
}
