/**
 * The skill sets of a process. A set is what one load of the skills gave: their definitions, the recorded
 * text of their modules and the executors that run it, so a set is a pool. One set takes all new runs; an
 * earlier set finishes the runs that it has and ends. To the rest of the platform all sets are one pool.
 */
import type { ExecutorPool, PoolStats } from './pool.ts';
import type { RunHandle, RunHandlers, RunRequest } from './run.ts';

/** Milliseconds that the runs of a set which is given up have to end. */
const givenUpMs = 200;

export class SkillSets implements ExecutorPool {
  readonly #load: () => Promise<ExecutorPool>;
  #current: ExecutorPool;
  /** The sets that have not ended, without the current one; the oldest first. */
  readonly #earlier = new Set<ExecutorPool>();
  #isStopped = false;
  /** Children that sets which have ended lost to a fault. */
  #deaths = 0;

  /** `load` starts a pool with the skills as they are on the disk then. */
  constructor(first: ExecutorPool, load: () => Promise<ExecutorPool>) {
    this.#current = first;
    this.#load = load;
  }

  get definitions(): ExecutorPool['definitions'] {
    return this.#current.definitions;
  }

  get leftOut(): ExecutorPool['leftOut'] {
    return this.#current.leftOut;
  }

  set leftOut(leftOut: ExecutorPool['leftOut']) {
    this.#current.leftOut = leftOut;
  }

  run(request: RunRequest, handlers: RunHandlers): RunHandle {
    return this.#current.run(request, handlers);
  }

  warm(): void {
    this.#current.warm();
  }

  stats(): PoolStats {
    const now = this.#current.stats();
    let { inFlight, waiting, deaths } = now;
    for (const set of this.#earlier) {
      const one = set.stats();
      inFlight += one.inFlight;
      waiting += one.waiting;
      deaths += one.deaths;
    }
    return { ...now, inFlight, waiting, deaths: deaths + this.#deaths };
  }

  /** Loads a set beside the current one. Rejects with SkillLoadError when the skills do not load. */
  async load(): Promise<ExecutorPool> {
    const set = await this.#load();
    if (!this.#isStopped) return set;
    await set.stop(0);
    throw new Error('the platform is stopping');
  }

  /** Gives all new runs to `next`; the set that had them until now. */
  swap(next: ExecutorPool): ExecutorPool {
    const before = this.#current;
    this.#current = next;
    return before;
  }

  /** Ends a set that takes no new runs, once its runs have ended. */
  async retire(set = this.#current): Promise<void> {
    this.#earlier.add(set);
    await set.retire();
    this.#earlier.delete(set);
    this.#deaths += set.stats().deaths;
  }

  /** How many earlier sets still have runs. */
  draining(): number {
    return this.#earlier.size;
  }

  /** Ends the oldest earlier set: its jobs go back to the queue and are charged no attempt. */
  async giveUpOldest(): Promise<void> {
    const [oldest] = this.#earlier;
    await oldest?.stop(givenUpMs);
  }

  async stop(graceMs: number): Promise<void> {
    this.#isStopped = true;
    const sets = [this.#current, ...this.#earlier];
    await Promise.all(sets.map((set) => set.stop(graceMs)));
  }
}
