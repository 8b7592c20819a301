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

/** Connects in the background; `isConnected` reports the state. */
export class Redis {
  /** Commands of this client fail at once while there is no connection. */
  readonly commands: Client;
  readonly #url: string;
  readonly #log: Logger;
  readonly #open = new Set<Client>();
  readonly #listeners = new Set<() => void>();
  readonly #opened = Promise.withResolvers<void>();
  readonly #probing: NodeJS.Timeout;
  #isConnected = false;
  #isClosed = false;
  /** Probes run one at a time, so that a late result cannot overwrite a newer one. */
  #isProbing = false;
  #lastError = 'there is no connection yet';

  constructor(url: string, log: Logger) {
    this.#url = url;
    this.#log = log;
    this.commands = this.#connect({
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: commandTimeoutMs,
    });
    setTimeout(() => this.#startWithout(), firstMs).unref();
    this.commands.on('error', ({ message }: Error) => {
      this.#lastError = message;
    });
    const probe = () => void this.#probe();
    this.commands.on('ready', probe);
    // A probe under way notices the closed connection itself.
    this.commands.on('close', probe);
    this.#probing = setInterval(probe, probeEveryMs).unref();
  }

  /** Whether the last probe could write to the server. */
  isConnected(): boolean {
    return this.#isConnected;
  }

  /** Resolves with the first connection, or when that takes too long. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Calls `listener` whenever the server becomes available. */
  onReconnect(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Opens another connection, whose commands wait for the server; `close` closes it as well. */
  connection({ blocking = false } = {}): Client {
    return this.#connect({
      maxRetriesPerRequest: null,
      // A blocking command gets no data while it blocks.
      ...(blocking ? { socketTimeout: 3 * silenceMs } : {}),
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#isConnected = false;
    clearInterval(this.#probing);
    await Promise.all([...this.#open].map(end));
  }

  #connect(options: Options): Client {
    const client = new Client(this.#url, {
      connectTimeout: connectTimeoutMs,
      socketTimeout: silenceMs,
      retryStrategy: (tries: number) => Math.min(tries * 50, reconnectMaxMs),
      // During a failover the old primary is read-only, so the client connects again.
      reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
      ...options,
    });
    // Without a listener, ioredis would print errors. The probe logs the state.
    client.on('error', () => {});
    this.#open.add(client);
    client.once('end', () => this.#open.delete(client));
    return client;
  }

  #startWithout(): void {
    this.#opened.resolve();
    if (this.#isConnected || this.#isClosed) return;
    this.#log.warn({ reason: this.#lastError }, 'Redis cannot be used yet: starting without it');
  }

  async #probe(): Promise<void> {
    if (this.#isProbing) return;
    this.#isProbing = true;
    const wasConnected = this.#isConnected;
    const reason = await this.#fault();
    this.#isProbing = false;
    this.#isConnected = reason === null;
    if (this.#isClosed || wasConnected === this.#isConnected) return;
    if (reason !== null) {
      this.#log.warn(
        { reason },
        'Redis cannot be used: hints wait in the database until it is back',
      );
      return;
    }
    this.#log.info('Redis can be used');
    this.#opened.resolve();
    for (const listener of this.#listeners) listener();
  }

  /** Why the server cannot be used, or null. */
  async #fault(): Promise<string | null> {
    const { commands } = this;
    if (commands.status !== 'ready') return this.#lastError;
    try {
      // Without an explicit select, the client would silently use another database when this one does not exist.
      if (!this.#isConnected) await commands.select(commands.options.db ?? 0);
      // A server that is full, or was replaced by another primary, answers but accepts no writes.
      await commands.set(probeKey, '', 'PX', probeKeyMs);
      return null;
    } catch (error) {
      return (error as Error).message;
    }
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
