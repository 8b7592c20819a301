/**
 * The connections of a process to Redis or Valkey, and whether they can be used. Redis holds no durable
 * state, so a command fails at once while there is no connection, and at its deadline without an answer.
 */
import { Redis as Client, type RedisOptions } from 'ioredis';

import type { Logger } from '../../kernel/log.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';

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

interface RedisState {
  readonly log: Logger;
  readonly commands: Client;
  readonly listeners: Set<() => void>;
  readonly opened: PromiseWithResolvers<void>;
  isConnected: boolean;
  isClosed: boolean;
  /** Probes run one at a time, so that a late result cannot overwrite a newer one. */
  isProbing: boolean;
  lastError: string;
}

/** Connects in the background; `isConnected` reports the state. */
export function openRedis(url: string, log: Logger): Redis {
  const open = new Set<Client>();
  const connectWith = (options: Options) => connect(url, open, options);
  const commands = connectWith({
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    commandTimeout: commandTimeoutMs,
  });
  const state: RedisState = {
    log,
    commands,
    listeners: new Set(),
    opened: Promise.withResolvers(),
    isConnected: false,
    isClosed: false,
    isProbing: false,
    lastError: 'there is no connection yet',
  };
  setTimeout(startWithout, firstMs, state).unref();
  commands.on('error', ({ message }: Error) => {
    state.lastError = message;
  });
  commands.on('ready', () => void probe(state));
  // A probe under way notices the closed connection itself.
  commands.on('close', () => void probe(state));
  const probing = setInterval(probe, probeEveryMs, state).unref();
  return {
    commands,
    isConnected: () => state.isConnected,
    opened: state.opened.promise,
    onReconnect: (listener) => void state.listeners.add(listener),
    connection: ({ blocking = false } = {}) =>
      connectWith({
        maxRetriesPerRequest: null,
        // A blocking command gets no data while it blocks.
        ...(blocking ? { socketTimeout: 3 * silenceMs } : {}),
      }),
    async close() {
      state.isClosed = true;
      state.isConnected = false;
      clearInterval(probing);
      await Promise.all([...open].map(end));
    },
  };
}

function connect(url: string, open: Set<Client>, options: Options): Client {
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

function startWithout({ opened, isConnected, isClosed, log, lastError }: RedisState): void {
  opened.resolve();
  if (isConnected || isClosed) return;
  log.warn({ reason: lastError }, 'Redis cannot be used yet: starting without it');
}

async function probe(state: RedisState): Promise<void> {
  if (state.isProbing) return;
  state.isProbing = true;
  const was = state.isConnected;
  const reason = await fault(state);
  state.isProbing = false;
  state.isConnected = reason === null;
  if (state.isClosed || was === state.isConnected) return;
  const { log, opened, listeners } = state;
  if (reason !== null) {
    log.warn({ reason }, 'Redis cannot be used: hints wait in the database until it is back');
    return;
  }
  log.info('Redis can be used');
  opened.resolve();
  for (const listener of listeners) listener();
}

/** Why the server cannot be used, or null. */
async function fault({ commands, isConnected, lastError }: RedisState): Promise<string | null> {
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
