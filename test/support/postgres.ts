/**
 * A private PostgreSQL from the machine's own binaries, on a free port and in a temporary
 * directory, so that a test may kill and restart it. It ends with the process that started it.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { openPostgres } from '../../src/adapters/database/postgres.ts';
import { createLogger } from '../../src/kernel/log.ts';
import { copiedOfFirst, copyDirectory, initialize } from './postgres-data.ts';
import {
  type Account,
  accountOf,
  freePort,
  logTail,
  type Supervised,
  serverDirectory,
  supervise,
  within,
} from './supervised.ts';
import { waitFor } from './wait-for.ts';

const startDeadlineMs = 20_000;
/** The database of a server that was started with one. */
const migratedName = 'migrated';

export interface PostgresServer {
  readonly port: number;
  /** Of the postmaster, the parent of all its processes. */
  readonly pid: number;
  /** Where its Unix socket is, for what should not depend on TCP. */
  readonly socketDirectory: string;
  /** Connection URL of one of its databases; of the maintenance database when left out. */
  url(database?: string): string;
  /** The URL of a database with the schema of this program, where the server was to have one. */
  readonly migratedUrl: string;
  /**
   * Makes a database, where nothing else is given of a name not used before, and returns its URL. It is empty, or a copy of the
   * database `template`, which must have no connections; its data is in the directory
   * `tablespace`, where that is given.
   */
  createDatabase(tablespace?: string, template?: string, name?: string): Promise<string>;
  /** Removes a database that `createDatabase` made, and its connections. */
  dropDatabase(url: string): Promise<void>;
  start(): Promise<void>;
  /** `fast` ends sessions and checkpoints, `immediate` stops as a crash would. */
  stop(mode: 'fast' | 'immediate'): Promise<void>;
  restart(mode: 'fast' | 'immediate'): Promise<void>;
  /** SIGKILL to the postmaster; the other processes notice and end by themselves. */
  kill(): Promise<void>;
  /** Whether it has ended, also by itself. */
  hasExited(): boolean;
  /** Stops it for good and removes its directory. */
  close(): Promise<void>;
}

/** Where `initdb` and `postgres` are, or undefined where PostgreSQL is not installed. */
export function findPostgres(): string | undefined {
  // Newest first; Debian's pg_config comes with another package than the server.
  const debian = globSync('/usr/lib/postgresql/*/bin').sort(
    (a, b) => Number(b.split('/')[4]) - Number(a.split('/')[4]),
  );
  return [...debian, configuredDirectory()].find(
    (directory) => existsSync(join(directory, 'initdb')) && existsSync(join(directory, 'postgres')),
  );
}

function configuredDirectory(): string {
  try {
    return execFileSync('pg_config', ['--bindir'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return '';
  }
}

/**
 * Starts a server. `durable` turns fsync on, for tests that count what survives; killing
 * processes alone loses nothing without it, only a power cut would. `settings` go over its own.
 * `isShared` keeps two connections to make and remove databases, for a server that makes many and is never
 * killed: a connection takes as much of the processor as the copy of a database. `isMigrated` gives it a database with
 * the schema of this program: a copy of one that is made once in a run of the tests, since a database and its migrations
 * take a second of the processor.
 */
export async function startPostgres(
  options: {
    durable?: boolean;
    settings?: Readonly<Record<string, string>>;
    isShared?: boolean;
    isMigrated?: boolean;
    /** Variables of its processes. */
    environment?: Readonly<Record<string, string>>;
  } = {},
): Promise<PostgresServer> {
  const binaries = findPostgres();
  if (binaries === undefined) throw new Error('PostgreSQL is not installed.');
  // PostgreSQL refuses to run as root.
  const account = process.getuid?.() === 0 ? accountOf('postgres', 'nobody') : null;
  const directory = serverDirectory('postgres', account);
  const data = join(directory, 'data');
  await (options.isMigrated
    ? copiedOfFirst('postgres-migrated', data, account, fillMigrated)
    : copiedOfFirst('postgres-empty', data, account, (place) =>
        initialize(join(binaries, 'initdb'), place, account),
      ));

  let port = await freePort();
  let server: Supervised | undefined;

  async function start(): Promise<void> {
    await waitFor(
      async () => {
        server = await supervise(directory, account, 'QUIT', [
          ...within(options.environment),
          join(binaries ?? '', 'postgres'),
          '-D',
          data,
          ...switches({
            ...settings(directory, port, options.durable ?? false),
            ...options.settings,
          }),
        ]);
        if (await ready(server, data)) return true;
        // Another program took the port, or the processes of a killed server are still ending.
        if (neverRan(directory, port)) port = await freePort();
        return false;
      },
      {
        describe: () => `PostgreSQL starts. Its log:\n${logTail(directory)}`,
        deadlineMs: startDeadlineMs,
        everyMs: 100,
      },
    );
  }

  async function signalled(name: NodeJS.Signals): Promise<void> {
    if (server === undefined || server.hasExited()) return;
    server.signal(name);
    await server.exited;
  }

  const stop = (mode: 'fast' | 'immediate') => signalled(mode === 'fast' ? 'SIGINT' : 'SIGQUIT');
  const url = (database = 'postgres') => `postgres://postgres@127.0.0.1:${port}/${database}`;

  await start();
  const maintenance = () =>
    new pg.Pool({ connectionString: url(), max: 2, idleTimeoutMillis: 0, allowExitOnIdle: true });
  const shared = options.isShared ? maintenance() : undefined;

  async function maintain<Result>(work: (pool: pg.Pool) => Promise<Result>): Promise<Result> {
    if (shared !== undefined) return await work(shared);
    const pool = maintenance();
    try {
      return await work(pool);
    } finally {
      await pool.end();
    }
  }

  return {
    get port() {
      return port;
    },
    get pid() {
      return server?.pid ?? 0;
    },
    socketDirectory: directory,
    url,
    migratedUrl: url(migratedName),
    createDatabase: async (tablespace, template, name) =>
      url(await maintain((pool) => createDatabase(pool, { tablespace, template, name }))),
    dropDatabase: (database) => maintain((pool) => dropDatabase(pool, database)),
    start,
    stop,
    async restart(mode) {
      await stop(mode);
      await start();
    },
    kill: () => signalled('SIGKILL'),
    hasExited: () => server?.hasExited() ?? true,
    async close() {
      await shared?.end();
      await stop('immediate');
      await server?.end();
    },
  };
}

/** Fills a data directory with a database that has the schema of this program. */
async function fillMigrated(data: string, account: Account): Promise<void> {
  const server = await startPostgres();
  try {
    const url = await server.createDatabase(undefined, undefined, migratedName);
    await (await openPostgres(url, createLogger('silent'))).close();
    await server.stop('fast');
    await copyDirectory(join(server.socketDirectory, 'data'), data, account);
  } finally {
    await server.close();
  }
}

function settings(directory: string, port: number, durable: boolean): Record<string, string> {
  return {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: directory,
    port: String(port),
    max_connections: '200',
    shared_buffers: '64MB',
    fsync: durable ? 'on' : 'off',
    // Without it a killed server forgets what it had acknowledged.
    synchronous_commit: 'on',
    full_page_writes: durable ? 'on' : 'off',
    autovacuum_naptime: '10s',
    timezone: 'UTC',
  };
}

function switches(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

/** Waits until the server says so in its lock file; false when it ended instead. */
function ready(server: Supervised, data: string): Promise<boolean> {
  return waitFor(
    () => {
      if (server.hasExited()) return { started: false };
      const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
      const started = Number(lines[0]) === server.pid && lines[7]?.trim() === 'ready';
      return started ? { started } : undefined;
    },
    { describe: 'PostgreSQL is ready', deadlineMs: startDeadlineMs },
  ).then((outcome) => outcome.started);
}

function neverRan(directory: string, port: number): boolean {
  const log = logTail(directory);
  return log.includes('could not bind') && log.includes(String(port));
}

/** Makes a database; its name. */
async function createDatabase(
  pool: pg.Pool,
  options: Readonly<Partial<Record<'tablespace' | 'template' | 'name', string | undefined>>>,
): Promise<string> {
  const { tablespace, template, name = `test_${randomBytes(6).toString('hex')}` } = options;
  if (tablespace !== undefined) {
    await pool.query(`CREATE TABLESPACE ${name} LOCATION '${tablespace}'`);
  }
  const place = tablespace === undefined ? '' : `TABLESPACE ${name}`;
  const { rows } = await pool.query('SHOW server_version_num');
  // Older servers copy files anyway. It makes the server write what it holds in memory, which is
  // cheap without fsync; the other way writes every page to the log.
  const strategy = Number(rows[0].server_version_num) >= 150_000 ? 'STRATEGY file_copy' : '';
  const source = template ?? 'template0';
  await pool.query(`CREATE DATABASE ${name} TEMPLATE ${source} ${strategy} ${place}`);
  return name;
}

async function dropDatabase(pool: pg.Pool, url: string): Promise<void> {
  await pool.query(`DROP DATABASE IF EXISTS ${nameOf(url)} WITH (FORCE)`);
}

/** The database that a URL names. */
export function nameOf(url: string): string {
  return new URL(url).pathname.slice(1);
}
