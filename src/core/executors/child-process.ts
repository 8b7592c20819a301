/**
 * The operating system's side of an executor: how a child is started and killed. A child
 * leads its own process group, so that what it has started itself dies with it, and gets an
 * environment of named variables only.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nodeArguments } from '../../kernel/node-program.ts';
import type { ChildSettings } from './child/child.ts';

/** Variables that every child gets when the parent has them; the operator names all others. */
const inheritedNames = ['PATH', 'HOME', 'TZ', 'LANG', 'NODE_EXTRA_CA_CERTS'];
/** A quarter of the default: as fast for short runs, and a busy child holds 83 MB where 8 make it 89 to 113. */
const semiSpaceMb = 4;

/** A started child. */
export interface Child {
  readonly process: ChildProcess;
  readonly socket: Socket;
  /** Undefined when it could not be started; `process` then emits `error`. */
  readonly pid: number | undefined;
}

interface ChildOptions {
  memoryMb: number;
  env: Readonly<Record<string, string>>;
  settings: ChildSettings;
  /** File descriptor of the skills snapshot. */
  snapshotFd: number;
  /** Port for a debugger, of this machine only; null for none. */
  inspectPort: number | null;
}

/** Starts the child. A failure to do so is an `error` event of its process, or an exception. */
export function spawnChild(options: ChildOptions): Child {
  const child = spawnProcess(options);
  // With no file descriptor left there are no streams either, whatever the types say.
  const socket = (child.stdio as typeof child.stdio | undefined)?.[3];
  if (socket === undefined || socket === null) {
    child.on('error', () => {});
    throw new Error('no executor can be started: too few file descriptors');
  }
  return { process: child, socket: socket as Socket, pid: child.pid };
}

function spawnProcess(options: ChildOptions): ChildProcess {
  const entry = new URL(`./child/child${extname(import.meta.url)}`, import.meta.url);
  return spawn(
    process.execPath,
    [
      ...nodeArguments([
        `--max-old-space-size=${options.memoryMb}`,
        `--max-semi-space-size=${semiSpaceMb}`,
        ...(options.inspectPort === null ? [] : [`--inspect=127.0.0.1:${options.inspectPort}`]),
      ]),
      fileURLToPath(entry),
      JSON.stringify(options.settings),
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe', 'pipe', options.snapshotFd],
      detached: true,
      env: childEnvironment(options.env),
      windowsHide: true,
    },
  );
}

function childEnvironment(named: Readonly<Record<string, string>>): Record<string, string> {
  // biome-ignore lint/style/noProcessEnv: five variables without which no program runs as usual.
  const own = process.env;
  const inherited = inheritedNames.flatMap((name): [string, string][] => {
    const value = own[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { ...Object.fromEntries(inherited), ...named };
}

/** Sends SIGKILL to the child and to the processes of its group. */
export function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // The process is already gone.
  }
}

/** Describes an exit; V8 reports a full heap on stderr. */
export function explainExit(how: string, stderrTail: string): string {
  return /heap out of memory|Allocation failed|OOM/.test(stderrTail)
    ? `${how}, out of memory`
    : how;
}
