/** The stores of a configuration: database, queue, bus and limiter. */

import type { Database } from '../../adapters/database/database.ts';
import { MemoryQueue } from '../../adapters/queue/memory.ts';
import type { Queue } from '../../adapters/queue/queue.ts';
import type { Config } from '../../core/config/config.ts';
import type { Logger } from '../../kernel/log.ts';
import type { ClusterParts } from './parts.ts';

export interface Stores {
  readonly database: Database;
  readonly queue: Queue;
  readonly cluster: ClusterParts | null;
}

/** Loads what the stores of a configuration need, so that they open sooner. */
export async function loadStores({ databaseUrl }: Config): Promise<void> {
  if (databaseUrl === null) await import('../../adapters/database/sqlite.ts');
  else await import('../../adapters/database/postgres.ts');
}

/** Opens them; a database that is handed in is used instead of the configured one. */
export async function openStores(
  config: Config,
  log: Logger,
  given?: Database | undefined,
): Promise<Stores> {
  const database = given ?? (await openDatabase(config, log));
  if (config.redisUrl === null) return { database, queue: new MemoryQueue(log), cluster: null };
  // Loaded only where they are used: they are a good part of what there is to load.
  const [{ Redis }, { createRedisBus }, { DatabaseClock }, { BullmqQueue }] = await Promise.all([
    import('../../adapters/redis/redis.ts'),
    import('../../adapters/redis/bus.ts'),
    import('../../adapters/database/clock.ts'),
    import('../../adapters/queue/bullmq.ts'),
  ]);
  const clock = new DatabaseClock(database);
  await clock.measure();
  const redis = new Redis(config.redisUrl, log);
  const bus = createRedisBus(redis);
  // A platform starts without Redis, too, but need not begin by saying that it is missing.
  await redis.opened;
  return { database, queue: new BullmqQueue(redis, log), cluster: { redis, bus, clock } };
}

async function openDatabase(config: Config, log: Logger): Promise<Database> {
  if (config.databaseUrl === null) {
    const { openSqlite } = await import('../../adapters/database/sqlite.ts');
    return openSqlite(config.dataDir, log);
  }
  const { openPostgres } = await import('../../adapters/database/postgres.ts');
  return openPostgres(config.databaseUrl, log, { connectionsMax: config.databasePoolMax });
}
