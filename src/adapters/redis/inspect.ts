/** Looks at a Redis without changing it: for commands that tell what is wrong with an installation. */
import { Redis as Client } from 'ioredis';

const timeoutMs = 3_000;

export interface InspectedRedis {
  /** What it drops when its memory is full; null where it does not say. */
  readonly evictionPolicy: string | null;
  readonly isReplica: boolean;
  readonly isFull: boolean;
  /** Major and minor version of Redis, such as 6.2; null where it does not say. */
  readonly version: readonly [number, number] | null;
}

/** Throws the first error of the connection. */
export async function inspectRedis(url: string): Promise<InspectedRedis> {
  const client = new Client(url, {
    lazyConnect: true,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // What the driver throws later says only that the connection is closed.
  let first: Error | undefined;
  client.on('error', (error: Error) => {
    first ??= error;
  });
  try {
    await client.connect();
    // Without it the driver would silently use database 0 where this one does not exist.
    await client.select(client.options.db ?? 0);
    return factsIn(await client.info());
  } catch (error) {
    throw first ?? error;
  } finally {
    client.disconnect();
  }
}

function factsIn(info: string): InspectedRedis {
  const fact = (name: string) => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1] ?? null;
  const maxBytes = Number(fact('maxmemory') ?? 0);
  const [major, minor] = (fact('redis_version') ?? '').split('.').map(Number);
  return {
    evictionPolicy: fact('maxmemory_policy'),
    isReplica: fact('role') === 'slave',
    isFull: maxBytes > 0 && Number(fact('used_memory')) >= maxBytes,
    version: major && minor !== undefined ? [major, minor] : null,
  };
}
