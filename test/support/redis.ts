/**
 * A private Redis (or Valkey) from the machine's own binaries, on a free port and in a temporary
 * directory, so that a test may flush, stop, kill and freeze it. It ends with the process that
 * started it.
 */
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import {
  freePort,
  logTail,
  type Supervised,
  serverDirectory,
  supervise,
  within,
} from './supervised.ts';
import { waitFor } from './wait-for.ts';

const startDeadlineMs = 10_000;
const commandTimeoutMs = 5_000;

export interface RedisServer {
  readonly port: number;
  readonly pid: number;
  readonly url: string;
  /** Sends one inline command, such as `FLUSHALL`, and returns the first line of the answer. */
  command(line: string): Promise<string>;
  start(): Promise<void>;
  /** Stops it in order; without `persist` it comes back empty. */
  stop(): Promise<void>;
  kill(): Promise<void>;
  /** Whether it has ended, also by itself. */
  hasExited(): boolean;
  /** Stops answering while connections stay open, as a machine that hangs. */
  freeze(): void;
  thaw(): void;
  /** Stops it for good and removes its directory. */
  close(): Promise<void>;
}

/** The program, or undefined where neither Redis nor Valkey is installed. */
export function findRedis(): string | undefined {
  const directories = (process.env['PATH'] ?? '').split(':').concat('/usr/bin', '/usr/local/bin');
  for (const name of ['redis-server', 'valkey-server']) {
    const found = directories.map((directory) => join(directory, name)).find(existsSync);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** When what is written goes to disk. */
type Fsync = 'always' | 'everysec';

export interface RedisOptions {
  readonly persist?: boolean;
  readonly fsync?: Fsync;
  /** Variables of its process. */
  readonly environment?: Readonly<Record<string, string>>;
}

/**
 * Starts a server. With `persist` each write is on disk before it is answered, or, as is usual
 * where Redis serves a queue, within a second (`everysec`).
 */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const program = findRedis();
  if (program === undefined) throw new Error('Redis is not installed.');
  const directory = serverDirectory('redis', null);
  let port = await freePort();
  let server: Supervised | undefined;

  const command = (line: string) => firstLine(port, line);

  async function start(): Promise<void> {
    await waitFor(
      async () => {
        server = await supervise(directory, null, 'KILL', [
          ...within(options.environment),
          program ?? '',
          ...settings(directory, port, options.persist ?? false, options.fsync ?? 'always'),
        ]);
        if (await answers(server, command)) return true;
        port = await freePort();
        return false;
      },
      {
        describe: () => `Redis starts. Its log:\n${logTail(directory)}`,
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

  await start();
  return {
    get port() {
      return port;
    },
    get pid() {
      return server?.pid ?? 0;
    },
    get url() {
      return `redis://127.0.0.1:${port}`;
    },
    command,
    start,
    stop: () => signalled('SIGTERM'),
    kill: () => signalled('SIGKILL'),
    hasExited: () => server?.hasExited() ?? true,
    freeze: () => server?.signal('SIGSTOP'),
    thaw: () => server?.signal('SIGCONT'),
    async close() {
      await server?.end();
    },
  };
}

function settings(directory: string, port: number, persist: boolean, fsync: Fsync): string[] {
  return [
    '--bind',
    '127.0.0.1',
    '--port',
    String(port),
    '--dir',
    directory,
    '--save',
    '',
    '--appendonly',
    persist ? 'yes' : 'no',
    '--appendfsync',
    fsync,
    '--maxmemory-policy',
    'noeviction',
    '--databases',
    '10000',
  ];
}

async function answers(server: Supervised, command: (line: string) => Promise<string>) {
  const outcome = await waitFor(
    async () => {
      if (server.hasExited()) return { started: false };
      return (await command('PING')) === '+PONG' ? { started: true } : undefined;
    },
    { describe: 'Redis answers', deadlineMs: startDeadlineMs },
  );
  return outcome.started;
}

function firstLine(port: number, line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(`${line}\r\n`));
    socket.setTimeout(commandTimeoutMs, () => socket.destroy(new Error(`No answer to ${line}`)));
    socket.on('data', (bytes) => {
      answer += bytes.toString();
      const end = answer.indexOf('\r\n');
      if (end < 0) return;
      resolve(answer.slice(0, end));
      socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`Redis closed the connection after ${line}`)));
  });
}
