import type { Database } from '../../adapters/database/database.ts';
import type { Queue } from '../../adapters/queue/queue.ts';
import type { Bus } from '../../kernel/bus.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/log.ts';
import type { Config } from '../config/config.ts';
import type { RunObservers } from './run-observer.ts';

/**
 * What every verb needs of its process. The composition makes it once; a test makes the same with a clock and stores of
 * its own. A class takes it as its first argument, and beside it the classes whose methods it calls.
 */
export interface Context {
  readonly config: Config;
  readonly database: Database;
  readonly clock: Clock;
  readonly queue: Queue;
  /** Null where one process is the whole platform. */
  readonly bus: Bus | null;
  readonly log: Logger;
  /** Names the counts of this process among those of the others. */
  readonly writer: string;
  readonly observers: RunObservers;
}
