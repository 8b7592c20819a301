/**
 * Pools of executors that the platforms of a test process share, because starting one takes longer
 * than most tests. A platform sees its own runs alone: `stop` ends those and leaves the children for
 * the next platform. A test about the children themselves starts a pool of its own.
 */
import { setTimeout as elapsed } from 'node:timers/promises';
import { type ExecutorPool, startExecutorPool } from '../../src/core/executors/pool.ts';
import type { PoolOptions } from '../../src/core/executors/pool-options.ts';
import type { RunHandle } from '../../src/core/executors/run.ts';

interface Shared {
  readonly pool: Promise<ExecutorPool>;
  /** Platforms that use it now. */
  users: number;
}

/** By their options; the one that was used longest ago first. */
const pools = new Map<string, Shared>();
/** Of those that no platform uses. */
const idleMax = 3;

/** A pool with these options, for one platform. */
export async function sharedExecutors(options: PoolOptions): Promise<ExecutorPool> {
  const { log: _, ...rest } = options;
  const key = JSON.stringify(rest);
  const shared = pools.get(key) ?? { pool: startExecutorPool(options), users: 0 };
  shared.users += 1;
  touch(key, shared);
  const pool = await shared.pool.catch((error: unknown) => {
    pools.delete(key);
    throw error;
  });
  const runs = new Set<RunHandle>();
  const { deaths } = pool.stats();
  let stopping: Promise<void> | undefined;

  async function stop(graceMs: number): Promise<void> {
    for (const run of runs) run.abort('the platform is stopping');
    const ended = Promise.all([...runs].map((run) => run.outcome));
    await Promise.race([ended, elapsed(graceMs, null, { ref: false })]);
    shared.users -= 1;
    await stopIdle();
  }

  return {
    definitions: pool.definitions,
    leftOut: pool.leftOut,
    run(request, handlers) {
      if (stopping !== undefined) {
        return { outcome: Promise.resolve({ kind: 'aborted' }), abort() {}, suspend() {} };
      }
      const run = pool.run(request, handlers);
      runs.add(run);
      void run.outcome.finally(() => runs.delete(run));
      return run;
    },
    warm: () => pool.warm(),
    stats() {
      const all = pool.stats();
      return { ...all, deaths: all.deaths - deaths, inFlight: runs.size };
    },
    async retire() {
      await Promise.all([...runs].map((run) => run.outcome));
      stopping ??= stop(0);
      await stopping;
    },
    stop(graceMs) {
      stopping ??= stop(graceMs);
      return stopping;
    },
  };
}

function touch(key: string, shared: Shared): void {
  pools.delete(key);
  pools.set(key, shared);
}

async function stopIdle(): Promise<void> {
  const idle = [...pools].filter(([, { users }]) => users === 0);
  for (const [key, { pool }] of idle.slice(0, Math.max(0, idle.length - idleMax))) {
    pools.delete(key);
    await (await pool).stop(0);
  }
}
