/**
 * A server under measurement: a real process with an environment of its own, on a free port and a
 * temporary directory, and what the kernel says about it and all its descendants.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { freePort } from '../test/support/supervised.ts';
import { waitFor } from '../test/support/wait-for.ts';

const root = join(import.meta.dirname, '..');
const startDeadlineMs = 20_000;
const stopDeadlineMs = 35_000;
/** Linux counts processor time in hundredths of a second for every program that asks. */
const msPerTick = 10;

/** Which program: ours, or the ceiling it is compared with. */
export type Subject = 'ours' | 'ceiling';

/** One process of a program, with what it has started. */
export interface Program {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface Server extends Program {
  /** Headers that a request of the load carries. */
  readonly headers: Readonly<Record<string, string>>;
  /** Jobs that have completed since the start. */
  completed(): Promise<number>;
}

const adminSecret = 'bench-admin-secret-0123456789abcdef';
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) killGroup(child, 'SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1));

/** A new directory for a server's data. */
export function temporaryDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'skillwright-bench-'));
}

/** What `npm start` gives to Node: its options and the program. */
export function startWords(): string[] {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: { start: string };
  };
  return scripts.start.split(' ').slice(1);
}

/** Starts `subject` on `dataDir`, which it leaves behind when it stops; ours also gets a key. */
export async function startServer(
  subject: Subject,
  dataDir: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const words = subject === 'ours' ? startWords() : ['bench/ceiling.ts'];
  const program = await startProgram(words, dataDir, environment);
  return {
    ...program,
    headers: await headersFor(subject, program.url),
    completed: () => completedJobs(program.url),
  };
}

/** Starts a program, Node's options before its file in `words`, and waits until it is healthy. */
export async function startProgram(
  words: readonly string[],
  dataDir: string,
  environment: Readonly<Record<string, string>>,
): Promise<Program> {
  const port = await freePort();
  const file = words.at(-1);
  const child = launch([process.execPath, ...words], port, dataDir, environment);
  const url = `http://127.0.0.1:${port}`;
  await waitFor(
    () => {
      if (child.exitCode !== null) throw new Error(`${file} ended: ${logOf(dataDir)}`);
      return isHealthy(url);
    },
    { describe: () => `${file} starts: ${logOf(dataDir)}`, deadlineMs: startDeadlineMs },
  );
  return { url, pid: child.pid ?? 0, stop: () => stop(child) };
}

/** What a request of the load carries; ours wants a key, which is made for it. */
export async function headersFor(subject: Subject, url: string): Promise<Record<string, string>> {
  return {
    'content-type': 'application/json',
    ...(subject === 'ours' ? { 'x-api-key': await createKey(url) } : {}),
  };
}

/** Starts a program, the product as a user does; the milliseconds to its first healthy answer. */
export function measureColdStart(subject: Subject): Promise<number> {
  const begun = performance.now();
  const commands = {
    ours: ['npm', 'start'],
    ceiling: [process.execPath, 'bench/ceiling.ts'],
  } as const;
  return withCommand(commands[subject], async () => performance.now() - begun);
}

/** Runs `measure` as soon as the product is healthy that `command` starts; `pid` is the command's process. */
export async function withCommand<T>(
  command: readonly [string, ...string[]],
  measure: (pid: number) => Promise<T>,
): Promise<T> {
  const dataDir = temporaryDirectory();
  const port = await freePort();
  const child = launch(command, port, dataDir);
  try {
    await waitFor(() => isHealthy(`http://127.0.0.1:${port}`), {
      describe: () => `${command.join(' ')}: ${logOf(dataDir)}`,
      deadlineMs: startDeadlineMs,
      everyMs: 2,
    });
    return await measure(child.pid ?? 0);
  } finally {
    await stop(child);
    rmSync(dataDir, { recursive: true, force: true });
  }
}

function launch(
  command: readonly [string, ...string[]],
  port: number,
  dataDir: string,
  environment: Readonly<Record<string, string>> = {},
) {
  const log = openSync(join(dataDir, 'bench.log'), 'a');
  const child = spawn(command[0], command.slice(1), {
    cwd: root,
    // A group of its own, so that whatever it starts can be ended with it.
    detached: true,
    stdio: ['ignore', log, log],
    env: {
      // As in a user's shell: npm adds its own folders to the path, and only then.
      PATH: (process.env['PATH'] ?? '')
        .split(delimiter)
        .filter((folder) => !folder.includes('node_modules'))
        .join(delimiter),
      HOME: process.env['HOME'] ?? '/tmp',
      PORT: String(port),
      DATA_DIR: dataDir,
      ADMIN_SECRET: adminSecret,
      LOG_LEVEL: 'warn',
      ...environment,
    },
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  killGroup(child, 'SIGTERM');
  const force = setTimeout(() => killGroup(child, 'SIGKILL'), stopDeadlineMs);
  await ended;
  clearTimeout(force);
}

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  } catch {
    // It has ended already.
  }
}

function logOf(dataDir: string): string {
  return readFileSync(join(dataDir, 'bench.log'), 'utf8').slice(-2000);
}

async function isHealthy(url: string): Promise<boolean> {
  const response = await fetch(`${url}/health`);
  await response.arrayBuffer();
  return response.status === 200;
}

export async function createKey(url: string, organization = 'default'): Promise<string> {
  const response = await fetch(`${url}/admin/api-keys`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-admin-secret': adminSecret },
    body: JSON.stringify({
      ...{ client_name: 'bench', scopes: ['*'], rate_limit: 1_000_000 },
      organization_id: organization,
    }),
  });
  const key = (await response.json()) as { plaintext_key?: string };
  if (key.plaintext_key === undefined) throw new Error(`No key: ${JSON.stringify(key)}`);
  return key.plaintext_key;
}

/** Jobs that the process has completed since its start. */
export async function completedJobs(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = /^service_completed_jobs_total\{[^}]*queue="skill-execution"[^}]*\} (\S+)/m;
  return Number(line.exec(text)?.[1] ?? 0);
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly cpuMs: number;
}

/** The process and its descendants, as they are now. */
function processTree(pid: number): Process[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => processOf(Number(name)));
  const tree = all.filter((one) => one.pid === pid);
  // The list grows while it is walked, generation by generation.
  for (const { pid: parent } of tree) tree.push(...all.filter((one) => one.parent === parent));
  return tree;
}

function processOf(pid: number): Process[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in parentheses, may hold anything; the fields after it are plain.
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const [parent = 0] = fields.slice(1);
    // utime, stime, and the same of children that ended and were waited for.
    const cpuMs = fields.slice(11, 15).reduce((sum, ticks) => sum + ticks, 0) * msPerTick;
    return [{ pid, parent, cpuMs }];
  } catch {
    return [];
  }
}

/** Processor time that the process and its descendants have used so far. */
export function cpuMs(pid: number): number {
  return processTree(pid).reduce((sum, one) => sum + one.cpuMs, 0);
}

/** What the process alone has used of that; children that have ended count as its own. */
export function cpuMsAlone(pid: number): number {
  return processOf(pid)[0]?.cpuMs ?? 0;
}

/** Resident memory of the process and its descendants, shared pages counted in each. */
export function residentMiB(pid: number): number {
  return processTree(pid).reduce((sum, one) => sum + residentMiBOf(one.pid), 0);
}

/** Resident memory of each of them alone, the process itself first. */
export function residentMiBEach(pid: number): number[] {
  return processTree(pid).map((one) => residentMiBOf(one.pid));
}

function residentMiBOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024;
  } catch {
    // It has ended between the two looks.
    return 0;
  }
}

/** Runs `measure` against a server on an empty store. */
export async function withServer<T>(
  subject: Subject,
  measure: (server: Server) => Promise<T>,
  environment: Readonly<Record<string, string>> = {},
): Promise<T> {
  const dataDir = temporaryDirectory();
  try {
    const server = await startServer(subject, dataDir, environment);
    try {
      return await measure(server);
    } finally {
      await server.stop();
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
