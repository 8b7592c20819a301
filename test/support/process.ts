/**
 * The platform as a process of its own, as an operator starts it: `src/start.js` with environment
 * variables. For tests that kill it, stop it by a signal, or look at what it prints.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { adminSecret, clientOf, type Platform } from './platform.ts';
import { waitFor } from './wait-for.ts';

const source = join(import.meta.dirname, '../../src');

const { scripts } = JSON.parse(readFileSync(join(source, '../package.json'), 'utf8')) as {
  scripts: { start: string };
};
/** Those of `npm start`. */
const startFlags = scripts.start.split(' ').filter((word) => word.startsWith('--'));

export interface PlatformProcess
  extends Pick<Platform, 'request' | 'admin' | 'key' | 'run' | 'jobIn'> {
  readonly url: string;
  readonly pid: number;
  /** What it has printed so far. */
  output(): string;
  /** Sends a signal to the process alone, not to its children. */
  signal(name: NodeJS.Signals): void;
  /** How it ended. */
  readonly exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** SIGTERM, and its end. */
  stop(): Promise<void>;
}

/** Variables over the defaults of the tests; undefined takes one away. */
type Environment = Readonly<Record<string, string | undefined>>;

/**
 * What a start takes over from the tests. A compile cache that is named before the start spares it the
 * compiler of TypeScript, a tenth of its processor time.
 */
export function inherited(): Environment {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return { PATH, NODE_COMPILE_CACHE };
}

/** Starts a process that may fail to start: what it printed, and how it ended if it did. */
export function spawnPlatform(environment: Environment, main = 'start.js', program?: string) {
  if (process.env['TEST_STORES'] === 'cluster' && environment['DATABASE_URL'] === undefined) {
    throw new Error(
      'This process would run on SQLite once more: exclude its file from http-cluster (vitest.config.ts), or declare its test with `embeddedTest`.',
    );
  }
  const settings = { PORT: '0', ADMIN_SECRET: adminSecret, ...environment };
  return program === undefined
    ? spawnSource([main], settings)
    : spawnProgram(program, [], settings);
}

/** Starts a command of the command line, as its script in package.json does. */
export function spawnCommand(
  name: 'backup' | 'dev' | 'migrate-to-cluster' | 'start',
  environment: Environment,
  args: readonly string[] = [],
) {
  return spawnSource(['apps/cli/main.ts', name, ...args], environment);
}

function spawnSource([file = '', ...args]: readonly string[], environment: Environment) {
  const flags = file === 'start.js' ? startFlags : [];
  return spawnProgram(process.execPath, [...flags, resolve(source, file), ...args], environment);
}

function spawnProgram(program: string, args: readonly string[], environment: Environment) {
  const child: ChildProcess = spawn(program, [...args], {
    env: { ...inherited(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
  }
  const exit = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  return { child, exit, output: () => text };
}

/** Starts the platform on `dataDir`, another copy's `start.js` or its single executable, and waits until it is ready. */
export async function startProcess(
  dataDir: string,
  environment: Environment = {},
  main?: string,
  program?: string,
): Promise<PlatformProcess> {
  const settings = { DATA_DIR: dataDir, ...environment };
  const { child, exit, output } = spawnPlatform(settings, main, program);
  let isOver = false;
  void exit.then(() => {
    isOver = true;
  });
  const said = await waitFor(
    () => /"address":"([^"]+)"/.exec(output()) ?? (isOver ? 'nothing' : null),
    { describe: () => `the platform is ready; it said: ${output()}`, deadlineMs: 60_000 },
  );
  if (said === 'nothing') {
    const { code, signal } = await exit;
    throw new Error(`The platform ended with ${signal ?? `code ${code}`}; it said: ${output()}`);
  }
  const [, url = ''] = said;
  return {
    ...clientOf(url),
    url,
    pid: child.pid as number,
    output,
    exit,
    signal: (name) => void child.kill(name),
    async stop() {
      child.kill('SIGTERM');
      await exit;
    },
  };
}
