import type { DatabaseClock } from '../../adapters/database/clock.ts';
import type { Database } from '../../adapters/database/database.ts';
import type { RateLimiter } from '../../adapters/http/rate-limit.ts';
import type { Queue } from '../../adapters/queue/queue.ts';
import type { Redis } from '../../adapters/redis/redis.ts';
import type { Config } from '../../core/config/config.ts';
import type { ExecutorPool } from '../../core/executors/pool.ts';
import type { Bus } from '../../kernel/bus.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/log.ts';
import type { SenderOptions } from '../../platform/webhooks/send.ts';
import type { ConsoleFiles } from '../console/files.ts';

/** What processes share beside the database and the queue. */
export interface ClusterParts {
  readonly redis: Redis;
  readonly bus: Bus;
  /** The database's. */
  readonly clock: DatabaseClock;
}

/** What the platform stands on; chosen by the configuration, or by a test. */
export interface Parts {
  readonly config: Config;
  readonly version: string;
  readonly adminSecret: string;
  /** Null in a cluster that was given none: API keys of providers cannot be stored then. */
  readonly encryptionKey: Buffer | null;
  readonly database: Database;
  readonly queue: Queue;
  /** Null in a process that runs no skills. */
  readonly executors: ExecutorPool | null;
  /** Loads the skills again into executors of their own; left out where they cannot be reloaded. */
  readonly reloadExecutors?: () => Promise<ExecutorPool>;
  /** Whether its user is writing the skills: any change of a version is reloaded. */
  readonly isAuthoring?: boolean;
  /** What it shares with other processes; null where there are none. */
  readonly cluster: ClusterParts | null;
  /** A listening socket that this process inherited, instead of the configured address. */
  readonly listenFd?: number | null;
  /** Left out where no console is served. */
  readonly consoleFiles?: ConsoleFiles;
  /** Where a test has built guides. */
  readonly guideFolder?: string;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly limiter?: RateLimiter;
  /** For tests: additional certificate authorities in PEM, another resolver. */
  readonly webhookEgress?: Pick<SenderOptions, 'ca' | 'resolve'>;
}
