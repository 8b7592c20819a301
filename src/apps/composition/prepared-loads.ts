/** Loads of skills into a child that was started before, so that a load takes the time of the skills alone. */
import type { ExecutorPool } from '../../core/executors/pool.ts';
import type { LoadPlan } from '../../core/skills/sources/load-plan.ts';

/** Starts a pool that is ready to load the skills, and loads them once there is a plan. */
export type StartPrepared = (plan: Promise<LoadPlan>, giveUp: AbortSignal) => Promise<ExecutorPool>;

export interface PlannedLoad {
  readonly pool: Promise<ExecutorPool>;
  /** Ends it; the pool is then rejected. */
  readonly end: AbortController;
}

/** Milliseconds after a load until the next child is prepared, so that it does not slow the first runs. */
const prepareAfterMs = 300;

interface Prepared {
  readonly planned: PromiseWithResolvers<LoadPlan>;
  readonly end: AbortController;
  readonly pool: Promise<ExecutorPool>;
}

export class PreparedLoads {
  readonly #start: StartPrepared;
  #prepared: Prepared | undefined;

  constructor(start: StartPrepared) {
    this.#start = start;
  }

  load(plan: LoadPlan): PlannedLoad {
    const { planned, end, pool } = this.#prepared ?? this.#prepare();
    this.#prepared = undefined;
    planned.resolve(plan);
    return { pool: pool.finally(() => this.#prepareSoon()), end };
  }

  #prepare(): Prepared {
    const planned = Promise.withResolvers<LoadPlan>();
    const end = new AbortController();
    const made = { planned, end, pool: this.#start(planned.promise, end.signal) };
    made.pool.catch(() => {
      if (this.#prepared === made) this.#prepared = undefined;
    });
    return made;
  }

  #prepareSoon(): void {
    setTimeout(() => {
      this.#prepared ??= this.#prepare();
    }, prepareAfterMs).unref();
  }
}
