/** Loads of skills into a child that was started before, so that a load takes the time of the skills alone. */
import type { ExecutorPool } from '../../core/executors/pool.ts';
import type { LoadPlan } from '../../core/skills/sources/load-plan.ts';

/** Starts a pool that is ready to load the skills, and loads them once there is a plan. */
export type StartPrepared = (plan: Promise<LoadPlan>, giveUp: AbortSignal) => Promise<ExecutorPool>;

export interface PlannedLoad {
  readonly pool: Promise<ExecutorPool>;
  /** Ends it; the pool is then rejected. */
  giveUp(): void;
}

/** Milliseconds after a load until the next child is prepared, so that it does not slow the first runs. */
const prepareAfterMs = 300;

export function preparedLoads(start: StartPrepared): (plan: LoadPlan) => PlannedLoad {
  let prepared: ReturnType<typeof prepare> | undefined;
  const prepare = () => {
    const planned = Promise.withResolvers<LoadPlan>();
    const end = new AbortController();
    const made = { planned, end, pool: start(planned.promise, end.signal) };
    made.pool.catch(() => {
      if (prepared === made) prepared = undefined;
    });
    return made;
  };
  const prepareSoon = () => {
    setTimeout(() => {
      prepared ??= prepare();
    }, prepareAfterMs).unref();
  };
  return (plan) => {
    const { planned, end, pool } = prepared ?? prepare();
    prepared = undefined;
    planned.resolve(plan);
    return { pool: pool.finally(prepareSoon), giveUp: () => end.abort() };
  };
}
