/**
 * The way to Redis or Valkey: the connections of a process, and whether they can be used right now.
 * Nothing that goes this way is the truth, so a command that cannot be carried out fails at once
 * instead of waiting for better times, and one that is not answered fails at its deadline.
 */
import { Redis as Client, type RedisOptions } from 'ioredis';

import type { Logger } from '../kernel/log.ts';

export type { Client };

type Options = Pick<
  RedisOptions,
  'enableOfflineQueue' | 'maxRetriesPerRequest' | 'commandTimeout' | 'socketTimeout'
>;

/** A command that is not answered for so long has failed. */
const commandTimeoutMs = 1_000;
const connectTimeoutMs = 5_000;
/** A connection on which nothing is heard for so long, although something is asked, is given up. */
const silenceMs = 5_000;
/** Longest wait between two tries to connect. */
const reconnectMaxMs = 1_000;
/** Between two looks whether the server can be used. */
const lookEveryMs = 500;
/** What each look writes, and how long it is kept. */
const probe = 'skillwright:probe';
const probeMs = 10_000;
/** How long a start waits for the first connection. */
const firstMs = 2_000;
/** For the connections' orderly end. */
const closeMs = 1_000;

export interface Redis {
  /** For commands: refused at once while there is no connection. */
  readonly commands: Client;
  /** Whether the server could be written to just now. */
  isConnected(): boolean;
  /** Resolves with the first connection, or when that takes too long to wait for. */
  readonly opened: Promise<void>;
  /** Calls `listener` each time that the server can be used again. */
  onReconnect(listener: () => void): void;
  /** A further connection, which waits for the server instead of failing; closed with the others. */
  connection(options?: { blocking?: boolean }): Client;
  close(): Promise<void>;
}

/** Connects in the background: whether that succeeds is for `isConnected` to say. */
export function openRedis(url: string, log: Logger): Redis {
  const open = new Set<Client>();
  const listeners = new Set<() => void>();
  let isConnected = false;
  let isClosed = false;
  const opened = Promise.withResolvers<void>();
  setTimeout(opened.resolve, firstMs).unref();

  const commands = connect({
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: commandTimeoutMs,
  });

  function connect(options: Options): Client {
    const client = new Client(url, {
      connectTimeout: connectTimeoutMs,
      socketTimeout: silenceMs,
      retryStrategy: (tries: number) => Math.min(tries * 50, reconnectMaxMs),
      // A server that is being replaced says that it is read-only.
      reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
      ...options,
    });
    // Without a listener a lost connection would be printed; whether there is one is told below.
    client.on('error', () => {});
    open.add(client);
    client.once('end', () => open.delete(client));
    return client;
  }

  async function look(): Promise<void> {
    const was = isConnected;
    try {
      // One that is full, or that another one has taken the place of, answers but takes nothing.
      isConnected =
        commands.status === 'ready' && (await commands.set(probe, '', 'PX', probeMs)) === 'OK';
    } catch {
      isConnected = false;
    }
    if (isClosed || was === isConnected) return;
    if (!isConnected) {
      log.warn('Redis cannot be used: hints wait in the database until it is back');
      return;
    }
    log.info('Redis can be used');
    opened.resolve();
    for (const listener of listeners) listener();
  }

  commands.on('ready', () => void look());
  commands.on('close', () => void look());
  const looking = setInterval(() => void look(), lookEveryMs).unref();

  return {
    commands,
    isConnected: () => isConnected,
    opened: opened.promise,
    onReconnect: (listener) => void listeners.add(listener),
    connection: ({ blocking = false } = {}) =>
      connect({
        maxRetriesPerRequest: null,
        // A blocking command is silent for as long as it blocks.
        ...(blocking ? { socketTimeout: 3 * silenceMs } : {}),
      }),
    async close() {
      isClosed = true;
      isConnected = false;
      clearInterval(looking);
      await Promise.all([...open].map(end));
    },
  };
}

/** Ends a connection in order, or by force where the server does not answer. */
async function end(client: Client): Promise<void> {
  const ended = new Promise<void>((resolve) => {
    if (client.status === 'end') resolve();
    client.once('end', () => resolve());
  });
  const force = setTimeout(() => client.disconnect(), closeMs);
  if (client.status === 'ready') client.quit().catch(() => {});
  else client.disconnect();
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 2 * closeMs).unref())]);
  clearTimeout(force);
}
