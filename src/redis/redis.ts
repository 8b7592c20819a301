/**
 * The connections of a process to Redis or Valkey, and whether they can be used. Redis holds no durable
 * state, so a command fails at once while there is no connection, and at its deadline without an answer.
 */
import { Redis as Client, type RedisOptions } from 'ioredis';

import type { Logger } from '../kernel/log.ts';
import { withDeadline } from '../kernel/with-deadline.ts';

export type { Client };

type Options = Pick<
  RedisOptions,
  'enableOfflineQueue' | 'maxRetriesPerRequest' | 'commandTimeout' | 'socketTimeout'
>;

/** Deadline of a command. */
const commandTimeoutMs = 1_000;
const connectTimeoutMs = 5_000;
/** A connection is closed when a pending command gets no data for this time. */
const silenceMs = 5_000;
/** Longest wait between two attempts to connect. */
const reconnectMaxMs = 1_000;
/** Interval of the probes. */
const probeEveryMs = 500;
/** The key that each probe writes, and its lifetime. */
const probeKey = 'skillwright:probe';
const probeKeyMs = 10_000;
/** How long a starting process waits for the first connection. */
const firstMs = 2_000;
/** Deadline for closing the connections in order. */
const closeMs = 1_000;

export interface Redis {
  /** Commands of this client fail at once while there is no connection. */
  readonly commands: Client;
  /** Whether the last probe could write to the server. */
  isConnected(): boolean;
  /** Resolves with the first connection, or when that takes too long. */
  readonly opened: Promise<void>;
  /** Calls `listener` whenever the server becomes available. */
  onReconnect(listener: () => void): void;
  /** Opens another connection, whose commands wait for the server; `close` closes it as well. */
  connection(options?: { blocking?: boolean }): Client;
  close(): Promise<void>;
}

/** Connects in the background; `isConnected` reports the state. */
export function openRedis(url: string, log: Logger): Redis {
  const open = new Set<Client>();
  const listeners = new Set<() => void>();
  let isConnected = false;
  let isClosed = false;
  let lastError = 'there is no connection yet';
  const opened = Promise.withResolvers<void>();
  setTimeout(() => {
    opened.resolve();
    if (isConnected || isClosed) return;
    log.warn({ reason: lastError }, 'Redis cannot be used yet: starting without it');
  }, firstMs).unref();

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
      // During a failover the old primary is read-only, so the client connects again.
      reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
      ...options,
    });
    // Without a listener, ioredis would print errors. The probe logs the state.
    client.on('error', () => {});
    open.add(client);
    client.once('end', () => open.delete(client));
    return client;
  }

  /** Why the server cannot be used, or null. */
  async function fault(): Promise<string | null> {
    if (commands.status !== 'ready') return lastError;
    try {
      // Without an explicit select, the client would silently use another database when this one does not exist.
      if (!isConnected) await commands.select(commands.options.db ?? 0);
      // A server that is full, or was replaced by another primary, answers but accepts no writes.
      await commands.set(probeKey, '', 'PX', probeKeyMs);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
  }

  /** Probes run one at a time, so that a late result cannot overwrite a newer one. */
  let isProbing = false;

  async function runProbe(): Promise<void> {
    if (isProbing) return;
    isProbing = true;
    const was = isConnected;
    const reason = await fault();
    isProbing = false;
    isConnected = reason === null;
    if (isClosed || was === isConnected) return;
    if (!isConnected) {
      log.warn({ reason }, 'Redis cannot be used: hints wait in the database until it is back');
      return;
    }
    log.info('Redis can be used');
    opened.resolve();
    for (const listener of listeners) listener();
  }

  commands.on('error', ({ message }: Error) => {
    lastError = message;
  });
  commands.on('ready', () => void runProbe());
  commands.on('close', () => {
    // A probe under way notices the closed connection itself.
    if (!isProbing) void runProbe();
  });
  const probing = setInterval(() => void runProbe(), probeEveryMs).unref();

  return {
    commands,
    isConnected: () => isConnected,
    opened: opened.promise,
    onReconnect: (listener) => void listeners.add(listener),
    connection: ({ blocking = false } = {}) =>
      connect({
        maxRetriesPerRequest: null,
        // A blocking command gets no data while it blocks.
        ...(blocking ? { socketTimeout: 3 * silenceMs } : {}),
      }),
    async close() {
      isClosed = true;
      isConnected = false;
      clearInterval(probing);
      await Promise.all([...open].map(end));
    },
  };
}

/** Closes a connection in order, or by force when the server does not answer. */
async function end(client: Client): Promise<void> {
  if (client.status === 'end') return;
  const ended = new Promise<true>((resolve) => client.once('end', () => resolve(true)));
  if (client.status === 'ready') client.quit().catch(() => {});
  else client.disconnect();
  if (await withDeadline(ended, closeMs)) return;
  client.disconnect();
  await withDeadline(ended, closeMs);
}
