/** The options of a pool and their defaults. All times are milliseconds. */
import { type Clock, systemClock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/log.ts';
import type { LoadPlan } from '../skills/sources/load-plan.ts';

export type PoolLog = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;

export interface PoolOptions {
  /** Most children that share the runs; while runs go on there is one spare more, and without runs none. */
  readonly size: number;
  /** MB of heap of a child. It is killed above this plus memoryAllowanceMb of private memory. */
  readonly memoryMb: number;
  readonly skillsDirs: readonly string[];
  /**
   * Environment variables of the children besides PATH, HOME, TZ, LANG and NODE_EXTRA_CA_CERTS.
   * With NODE_COMPILE_CACHE here they start in half the time and hold 20 MB less.
   */
  readonly env: Readonly<Record<string, string>>;
  readonly log: PoolLog;
  readonly clock?: Clock;
  /** That a run has to end after its signal has aborted; 2,000. */
  readonly graceMs?: number;
  /** For which the event loop of a busy child may be silent; 5,000. */
  readonly stallMs?: number;
  /** For the neighbours of a run that did not stop; 10,000. */
  readonly drainMs?: number;
  /** Without runs, after which the pool ends its children; 90,000, so that it keeps them for a run each minute. */
  readonly idleMs?: number | null;
  /** The same before the first run; 5,000. Null for either: it keeps its children. */
  readonly unusedMs?: number | null;
  /** That a child may take to load each file of skills; 60,000. */
  readonly loadMs?: number;
  /**
   * First port on which children wait for a debugger; null for none. A child that is stopped in a
   * debugger looks like one that is blocked, so nothing is killed for silence or for its deadline.
   */
  readonly inspectPort?: number | null;
  /**
   * The first child prepares itself, and loads the skills by this plan once there is one; what does not load is left
   * out. Null: it loads all skills at once, and all have to load.
   */
  readonly plan?: Promise<LoadPlan> | null;
  /** Aborted to end a load that is no longer wanted; the pool then does not start. */
  readonly giveUp?: AbortSignal | null;
}

export type PoolSettings = Required<PoolOptions>;

/** The options, with defaults for those that are absent. */
export function readPoolOptions(options: PoolOptions): PoolSettings {
  return {
    clock: systemClock,
    graceMs: 2_000,
    stallMs: 5_000,
    drainMs: 10_000,
    idleMs: 90_000,
    unusedMs: 5_000,
    loadMs: 60_000,
    inspectPort: null,
    plan: null,
    giveUp: null,
    ...options,
  };
}
