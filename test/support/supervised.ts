/**
 * A server of the test's own that never outlives it. Between the test and the server stands a shell
 * that reads from a pipe which the test process holds: when that process ends, by whatever means,
 * the pipe closes, the shell kills the server and removes its directory.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { chownSync, mkdtempSync, openSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** The account a server runs as; null is the one that the tests run as. */
export type Account = { readonly uid: number; readonly gid: number } | null;

/** How a server ended: one of the two is null. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Supervised {
  /** Of the server itself. */
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** Whether it has ended, by itself or by a signal. */
  hasExited(): boolean;
  signal(name: NodeJS.Signals): void;
  /** Ends the server and removes its directory. */
  end(): Promise<void>;
}

// $1 is the directory, $2 the signal that ends the server; the rest is the command. The shell waits
// for the server, so another reads the pipe, as descriptor 3: a background job's own standard input
// would be /dev/null.
const supervisor = `
  directory=$1; signal=$2; shift 2
  exec 3<&0
  "$@" 3<&- </dev/null >&2 & server=$!
  echo "$server"
  { read -r _ <&3; touch "$directory/ended"; kill -s "$signal" "$server"; } 2>/dev/null & reader=$!
  wait "$server"; status=$?
  kill "$reader" 2>/dev/null
  if [ -e "$directory/ended" ]; then rm -rf "$directory"; fi
  exit "$status"
`;

/**
 * Starts `command`, which `endBy` stops for good; its output goes to the file `log` in the
 * directory.
 */
export async function supervise(
  directory: string,
  account: Account,
  endBy: 'QUIT' | 'KILL',
  command: readonly string[],
): Promise<Supervised> {
  const log = openSync(join(directory, 'log'), 'a');
  const shell = spawn('/bin/sh', ['-c', supervisor, 'supervisor', directory, endBy, ...command], {
    stdio: ['pipe', 'pipe', log],
    cwd: directory,
    ...(account ?? {}),
  });
  const exited = new Promise<Exit>((resolve) => {
    shell.once('exit', (status, signal) => resolve(exitOf(status, signal)));
  });
  const pid = await firstNumber(shell);
  return {
    pid,
    exited,
    hasExited: () => shell.exitCode !== null || shell.signalCode !== null,
    signal(name) {
      process.kill(pid, name);
    },
    async end() {
      shell.stdin?.end();
      await exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** What precedes a command that is to have these variables as well. */
export function within(environment: Readonly<Record<string, string>> = {}): readonly string[] {
  return ['env', ...Object.entries(environment).map(([name, value]) => `${name}=${value}`)];
}

/** What the shell's own status says of the server: a shell adds 128 to the number of a signal. */
function exitOf(status: number | null, signal: NodeJS.Signals | null): Exit {
  if (status === null || status <= 128) return { code: status, signal };
  const named = Object.entries(constants.signals).find(([, number]) => number === status - 128);
  return named === undefined
    ? { code: status, signal: null }
    : { code: null, signal: named[0] as NodeJS.Signals };
}

async function firstNumber(shell: ChildProcess): Promise<number> {
  if (shell.stdout === null) throw new Error('The supervisor has no output.');
  for await (const line of createInterface({ input: shell.stdout })) return Number(line);
  throw new Error('The supervisor ended before it started anything.');
}

/** A new directory that `account` owns, short enough for a Unix socket's path. */
export function serverDirectory(name: string, account: Account): string {
  const parent = account === null || isOpen(tmpdir()) ? tmpdir() : '/tmp';
  const directory = mkdtempSync(join(parent, `skillwright-${name}-`));
  if (account !== null) chownSync(directory, account.uid, account.gid);
  return directory;
}

/** Whether other accounts can enter it, as they cannot a private TMPDIR. */
function isOpen(directory: string): boolean {
  return (statSync(directory).mode & 0o001) !== 0;
}

/** The first of these accounts that the machine has. */
export function accountOf(...names: readonly string[]): Exclude<Account, null> {
  const entries = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of names) {
    const fields = entries.find((entry) => entry.startsWith(`${name}:`))?.split(':');
    if (fields) return { uid: Number(fields[2]), gid: Number(fields[3]) };
  }
  throw new Error(`None of the accounts ${names.join(', ')} exists.`);
}

/** A TCP port on 127.0.0.1 that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => {
        if (address !== null && typeof address === 'object') resolve(address.port);
        else reject(new Error('No port.'));
      });
    });
  });
}

/** The end of a server's log, for an error message. */
export function logTail(directory: string): string {
  try {
    return readFileSync(join(directory, 'log'), 'utf8').split('\n').slice(-15).join('\n');
  } catch {
    return '(no log)';
  }
}
