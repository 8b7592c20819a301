/**
 * The skill sets of a process. A set is what one load of the skills gave: their definitions, the recorded
 * text of their modules and the executors that run it, so a set is a pool. One set takes all new runs; an
 * earlier set finishes the runs that it has and ends. To the rest of the platform all sets are one pool.
 */
import type { ExecutorPool, PoolStats } from './pool.ts';

/** Milliseconds that the runs of a set which is given up have to end. */
const givenUpMs = 200;

export interface SkillSets extends ExecutorPool {
  /** Loads a set beside the current one. Rejects with SkillLoadError when the skills do not load. */
  load(): Promise<ExecutorPool>;
  /** Gives all new runs to `next`; the set that had them until now. */
  swap(next: ExecutorPool): ExecutorPool;
  /** Ends a set that takes no new runs, once its runs have ended. */
  retire(set?: ExecutorPool): Promise<void>;
  /** How many earlier sets still have runs. */
  draining(): number;
  /** Ends the oldest earlier set: its jobs go back to the queue and are charged no attempt. */
  giveUpOldest(): Promise<void>;
}

interface State {
  current: ExecutorPool;
  /** The sets that have not ended, without the current one; the oldest first. */
  readonly earlier: Set<ExecutorPool>;
  isStopped: boolean;
  /** Children that sets which have ended lost to a fault. */
  deaths: number;
}

/** `load` starts a pool with the skills as they are on the disk then. */
export function createSkillSets(first: ExecutorPool, load: () => Promise<ExecutorPool>): SkillSets {
  const state: State = { current: first, earlier: new Set(), isStopped: false, deaths: 0 };
  return {
    get definitions() {
      return state.current.definitions;
    },
    get leftOut() {
      return state.current.leftOut;
    },
    run: (request, handlers) => state.current.run(request, handlers),
    warm: () => state.current.warm(),
    stats: () => stats(state),
    async load() {
      const set = await load();
      if (!state.isStopped) return set;
      await set.stop(0);
      throw new Error('the platform is stopping');
    },
    swap(next) {
      const before = state.current;
      state.current = next;
      return before;
    },
    retire: (set = state.current) => retire(state, set),
    draining: () => state.earlier.size,
    async giveUpOldest() {
      const [oldest] = state.earlier;
      await oldest?.stop(givenUpMs);
    },
    async stop(graceMs) {
      state.isStopped = true;
      const sets = [state.current, ...state.earlier];
      await Promise.all(sets.map((set) => set.stop(graceMs)));
    },
  };
}

async function retire(state: State, set: ExecutorPool): Promise<void> {
  state.earlier.add(set);
  await set.retire();
  state.earlier.delete(set);
  state.deaths += set.stats().deaths;
}

function stats({ current, earlier, deaths }: State): PoolStats {
  const now = current.stats();
  let { inFlight, waiting, deaths: all } = now;
  for (const set of earlier) {
    const one = set.stats();
    inFlight += one.inFlight;
    waiting += one.waiting;
    all += one.deaths;
  }
  return { ...now, inFlight, waiting, deaths: all + deaths };
}
