import type { Config } from '../config.ts';
import type { Database } from '../database/database.ts';
import type { ExecutorPool } from '../executors/pool.ts';
import type { RateLimiter } from '../http/rate-limit.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Logger } from '../kernel/log.ts';
import type { Queue } from '../queue/queue.ts';
import type { WebhookEgress } from '../webhooks/outgoing.ts';

/** What the platform stands on; chosen by the configuration, or by a test. */
export interface Parts {
  readonly config: Config;
  readonly version: string;
  readonly adminSecret: string;
  /** Null in a cluster that was given none: API keys of providers cannot be stored then. */
  readonly encryptionKey: Buffer | null;
  readonly database: Database;
  readonly queue: Queue;
  readonly executors: ExecutorPool;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly limiter?: RateLimiter;
  readonly webhookEgress?: WebhookEgress;
}
