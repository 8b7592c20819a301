/**
 * A cluster of real processes on a private PostgreSQL and a private Redis, as an operator runs one:
 * `src/start.js` by role, each with an address of its own. Everything in it ends with the test process,
 * by whatever means that ends, and with `close`.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { Database } from '../../src/adapters/database/database.ts';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { adminSecret, clientOf, type Platform } from './platform.ts';
import { type PostgresServer, startPostgres } from './postgres.ts';
import { inherited } from './process.ts';
import { type RedisOptions, type RedisServer, startRedis } from './redis.ts';
import { type Exit, logTail, type Supervised, serverDirectory, supervise } from './supervised.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
import { waitFor } from './wait-for.ts';

const main = join(import.meta.dirname, '../../src/start.js');
/** A busy machine starts slowly. */
const startDeadlineMs = 60_000;
/** SIGTERM to the end: the grace of the runs, and what the platform adds to it. */
const stopDeadlineMs = 30_000;

/** Values of ROLES. */
export type Role = 'api' | 'worker' | 'scheduler';
type Client = Pick<Platform, 'request' | 'admin' | 'key' | 'run' | 'jobIn'>;
/** Variables over the defaults of the tests; undefined takes one away. */
type Environment = Readonly<Record<string, string | undefined>>;

/** What one process is: a role, or several of them. */
export type Roles =
  | Role
  | 'api,scheduler'
  | 'api,worker'
  | 'worker,scheduler'
  | 'api,worker,scheduler';

export interface ClusterProcess {
  /** `worker-2`. */
  readonly name: string;
  readonly roles: Roles;
  /** Where it listens now; another port after each start. */
  readonly url: string;
  readonly pid: number;
  /** What a test asks of it; of a process with the role api everything. */
  readonly client: Client;
  /** All that it has printed, over all its starts. */
  log(): string;
  /** Sends a signal to the process alone, not to its children. */
  signal(name: NodeJS.Signals): void;
  /** SIGKILL, and its end. */
  kill(): Promise<void>;
  /** SIGTERM, and how it ended. */
  stop(): Promise<Exit>;
  /** Starts it again once it has ended, with the same name and environment. */
  start(): Promise<void>;
  /** Whether it has ended, or has not begun. */
  hasExited(): boolean;
  readonly exited: Promise<Exit>;
}

export interface AddOptions {
  readonly environment?: Environment;
  /** Another `start.js` to run, of another version. */
  readonly main?: string;
}

export interface ClusterOptions {
  /** How many processes of each role; 1 when left out. */
  readonly api?: number;
  readonly workers?: number;
  readonly schedulers?: number;
  /** More processes, each with these roles: one for each role would take half a second of the processor more. */
  readonly also?: readonly Roles[];
  readonly environment?: Environment;
  /** SKILLS_DIR of all. */
  readonly skillsDir?: string;
  readonly redis?: RedisOptions;
  /** An empty directory of the database server's account that is to hold the database. */
  readonly tablespace?: string;
  /** Whether the processes find an empty database, and migrate it. */
  readonly isUnmigrated?: boolean;
  /** Settings of PostgreSQL. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Variables of PostgreSQL's processes. */
  readonly postgresEnvironment?: Readonly<Record<string, string>>;
  /** Whether all processes reach the stores through proxies. */
  readonly proxied?: boolean;
}

export interface Cluster {
  readonly postgres: PostgresServer;
  readonly redis: RedisServer;
  /** Between all processes and the stores, where `proxied` was asked for. */
  readonly proxies: { readonly postgres: TcpProxy; readonly redis: TcpProxy } | null;
  /** The database of the cluster, reached directly. */
  readonly databaseUrl: string;
  readonly processes: readonly ClusterProcess[];
  /** Those of a role, in the order in which they were added. */
  of(role: Role): readonly ClusterProcess[];
  /** Starts one more. */
  add(roles: Roles, options?: AddOptions): Promise<ClusterProcess>;
  /** Ends one by SIGTERM and takes it out; how it ended. */
  remove(process: ClusterProcess): Promise<Exit>;
  /** One statement. */
  // biome-ignore lint/suspicious/noExplicitAny: rows of many shapes
  sql(text: string, values?: readonly unknown[]): Promise<any[]>;
  /** The database as the platform sees it; to be closed by the caller. */
  openDatabase(): Promise<Database>;
  /** Waits until every job has ended, and every delivery of a webhook is over. */
  untilIdle(deadlineMs?: number): Promise<void>;
  close(): Promise<void>;
}

/** Starts the stores, then all processes at once; the caller closes it. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const closers: (() => unknown)[] = [];
  const close = async () => {
    // The last that was opened first: the processes, then the stores beneath them.
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    return await open(options, closers, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function open(
  options: ClusterOptions,
  closers: (() => unknown)[],
  close: () => Promise<void>,
): Promise<Cluster> {
  const isMigrated = !options.isUnmigrated && options.tablespace === undefined;
  const postgres = await startPostgres({
    isMigrated,
    settings: options.settings ?? {},
    environment: options.postgresEnvironment ?? {},
  });
  closers.push(() => postgres.close());
  const redis = await startRedis(options.redis);
  closers.push(() => redis.close());
  const databaseUrl = isMigrated
    ? postgres.migratedUrl
    : await postgres.createDatabase(options.tablespace);
  const proxies = options.proxied
    ? {
        postgres: await startTcpProxy(() => postgres.port),
        redis: await startTcpProxy(() => redis.port),
      }
    : null;
  closers.push(() => {
    proxies?.postgres.close();
    proxies?.redis.close();
  });

  const processes: ManagedProcess[] = [];
  closers.push(() => Promise.all(processes.map((process) => process.end())));
  const numbers = new Map<Roles, number>();
  const environment: Environment = {
    DATABASE_URL: withPort(databaseUrl, proxies?.postgres.port),
    REDIS_URL: withPort(redis.url, proxies?.redis.port),
    EXECUTORS: '1',
    RETRY_BACKOFF_MS: '100',
    SHUTDOWN_GRACE_MS: '10000',
    ...(options.skillsDir === undefined ? {} : { SKILLS_DIR: options.skillsDir }),
    ...options.environment,
  };

  async function add(roles: Roles, more: AddOptions = {}): Promise<ClusterProcess> {
    const number = (numbers.get(roles) ?? 0) + 1;
    numbers.set(roles, number);
    const name = `${roles.replaceAll(',', '-')}-${number}`;
    const process = managedProcess(name, roles, more.main ?? main, {
      ...environment,
      ...more.environment,
    });
    processes.push(process);
    await process.start();
    return process;
  }

  // One connection, kept while statements follow one another: a new one takes PostgreSQL longer than most statements.
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    connectionTimeoutMillis: 5_000,
    query_timeout: 10_000,
    application_name: 'test',
    max: 1,
  });
  pool.on('error', () => {});
  closers.push(() => pool.end());
  const sql = async (text: string, values: readonly unknown[] = []) =>
    (await pool.query(text, [...values])).rows;

  const { api = 1, workers = 1, schedulers = 1 } = options;
  const roles: readonly Roles[] = [
    ...Array<Role>(api).fill('api'),
    ...Array<Role>(workers).fill('worker'),
    ...Array<Role>(schedulers).fill('scheduler'),
    ...(options.also ?? []),
  ];
  // Side by side, but no more than there are cores: a start has deadlines of its own.
  const waiting = [...roles];
  const startSome = async () => {
    for (let role = waiting.shift(); role !== undefined; role = waiting.shift()) await add(role);
  };
  // All have ended or begun before a failure is told, so that none is begun after the end.
  const started = await Promise.allSettled(
    Array.from({ length: availableParallelism() }, startSome),
  );
  for (const one of started) if (one.status === 'rejected') throw one.reason;

  return {
    postgres,
    redis,
    proxies,
    databaseUrl,
    processes,
    of: (role) => processes.filter(({ roles }) => roles.split(',').includes(role)),
    add,
    async remove(process) {
      const exit = await process.stop();
      const [removed] = processes.splice(processes.indexOf(process as ManagedProcess), 1);
      await removed?.end();
      return exit;
    },
    sql,
    openDatabase: () => openPostgres(databaseUrl, createLogger('silent')),
    async untilIdle(deadlineMs = 120_000) {
      let left: unknown;
      await waitFor(
        async () => {
          [left] = await sql(`SELECT
            (SELECT count(*)::int FROM jobs WHERE due_at IS NOT NULL) AS jobs,
            (SELECT count(*)::int FROM webhook_deliveries WHERE due_at IS NOT NULL) AS deliveries`);
          return Object.values(left as object).every((count) => count === 0);
        },
        {
          describe: () => `nothing is left to be done; there was: ${JSON.stringify(left)}`,
          deadlineMs,
          everyMs: 200,
        },
      );
    },
    close,
  };
}

function withPort(url: string, port: number | undefined): string {
  if (port === undefined) return url;
  const changed = new URL(url);
  changed.port = String(port);
  return changed.href;
}

interface ManagedProcess extends ClusterProcess {
  /** SIGKILL and no trace left, in whatever state it is. */
  end(): Promise<void>;
}

function managedProcess(
  name: string,
  roles: Roles,
  program: string,
  environment: Environment,
): ManagedProcess {
  let server: Supervised | undefined;
  let directory = '';
  let url = '';
  /** What earlier starts have printed; their directories are gone. */
  let earlier = '';
  let isOver = false;

  const running = () => {
    if (server === undefined) throw new Error(`${name} has not been started.`);
    return server;
  };
  const printed = () => (directory === '' ? '' : readLog(directory));

  async function clear(): Promise<void> {
    if (server === undefined) return;
    earlier += printed();
    directory = '';
    await server.end();
  }

  async function start(): Promise<void> {
    if (server !== undefined && !server.hasExited()) throw new Error(`${name} runs.`);
    await clear();
    if (isOver) throw new Error(`${name} is over.`);
    directory = serverDirectory(name, null);
    const variables = {
      ...inherited(),
      PORT: '0',
      ADMIN_SECRET: adminSecret,
      ROLES: roles,
      DATA_DIR: directory,
      ...environment,
    };
    const command = ['env', '-i', ...assignments(variables), process.execPath, program];
    const starting = await supervise(directory, null, 'KILL', command);
    server = starting;
    url = await waitFor(
      () => {
        if (starting.hasExited()) return { ended: true as const };
        const address = /"address":"([^"]+)"/.exec(printed())?.[1];
        return address === undefined ? null : { ended: false as const, address };
      },
      {
        describe: () => `${name} is ready. Its log:\n${logTail(directory)}`,
        deadlineMs: startDeadlineMs,
        everyMs: 20,
      },
    ).then((outcome) => {
      if (outcome.ended) throw new Error(`${name} ended. Its log:\n${logTail(directory)}`);
      return outcome.address;
    });
  }

  return {
    name,
    roles,
    get url() {
      return url;
    },
    get pid() {
      return running().pid;
    },
    get client() {
      return clientOf(url);
    },
    log: () => earlier + printed(),
    signal: (signal) => running().signal(signal),
    async kill() {
      running().signal('SIGKILL');
      await running().exited;
    },
    async stop() {
      const stopping = running();
      if (!stopping.hasExited()) stopping.signal('SIGTERM');
      await waitFor(() => stopping.hasExited(), {
        describe: () => `${name} ends after SIGTERM. Its log:\n${logTail(directory)}`,
        deadlineMs: stopDeadlineMs,
      });
      return await stopping.exited;
    },
    start,
    hasExited: () => server?.hasExited() ?? true,
    get exited() {
      return running().exited;
    },
    async end() {
      isOver = true;
      await clear();
    },
  };
}

function assignments(variables: Environment): string[] {
  return Object.entries(variables)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${value}`);
}

function readLog(directory: string): string {
  try {
    return readFileSync(join(directory, 'log'), 'utf8');
  } catch {
    return '';
  }
}
