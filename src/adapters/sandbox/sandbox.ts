/**
 * The parent's side of a sandboxed process, which evaluates untrusted programs and parses untrusted
 * documents. The process has almost no permissions, takes one request at a time, and is killed at the
 * deadline. It is a process and not a thread for three reasons: a thread has all permissions of its
 * process, some loops of V8 cannot be interrupted, and one large allocation ends the whole process
 * despite the limits of the thread.
 */
import type { ChildProcess } from 'node:child_process';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startOrphanGuard } from '../../kernel/orphan-guard.ts';
import { cpuMs, privateBytes } from '../../kernel/proc.ts';
import { withDeadline } from '../../kernel/with-deadline.ts';
import type { SandboxAnswer, SandboxRequest } from './sandbox-process.ts';

export interface SandboxOptions {
  /** `import.meta.url` of the module whose functions are called, a file of this project. */
  readonly module: string;
  /** MB of heap. The whole process may have twice that plus `baseMb` (enforced on Linux only). */
  readonly memoryMb: number;
}

/** Memory of the process besides heap and buffers. */
const baseMb = 128;
/** How often the memory of the whole process is checked, because buffers are not in the heap. */
const memoryCheckMs = 100;
const bytesPerMb = 1024 * 1024;
/** Time to start: it loads the code of libraries, possibly on a busy machine. */
const readyMs = 30_000;
/** When the timer fires this much too late, the parent was blocked and not the process. */
const heldUpMs = 250;
/** A process is late only when it has used this share of its deadline as processor time. */
const lateShare = 0.9;
/** Limit of the wait, in multiples of the deadline, when the process gets little processor time. */
const waitFactor = 10;
/** Signals with which V8 ends a process that exceeds its memory limit. */
const exhaustionSignals: readonly (string | null)[] = ['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV'];

/**
 * Why there is no answer. `late`: it computed too long. `exhausted`: it took too much memory. `gone`: the
 * process ended for another reason. `held up`: the machine or the parent had no time for it.
 */
export type NoAnswer = Overdue | 'exhausted' | 'gone';
type Overdue = 'late' | 'held up';

export interface Sandbox {
  /**
   * Calls a function of the module. Rejects when the input cannot be written as JSON. `deadlineMs` is
   * processor time on Linux, and elapsed time elsewhere. After `NoAnswer` the process has ended.
   */
  ask(request: SandboxRequest, deadlineMs: number): Promise<SandboxAnswer | NoAnswer>;
  /** Whether the process has ended, as far as this process has been told. */
  hasEnded(): boolean;
  /** Kills the process; resolves when it is gone. */
  stop(): Promise<void>;
}

/** Rejects when the process is not ready in time. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const child = forkChild(options);
  const guard = startOrphanGuard('sandbox-orphan-guard', () => {});
  guard.add(child.pid);
  const gone = new Promise<NoAnswer>((resolve) => {
    const end = (how: NoAnswer) => {
      guard.remove(child.pid);
      void guard.stop();
      resolve(how);
    };
    child.once('exit', (_code, signal) =>
      end(exhaustionSignals.includes(signal) ? 'exhausted' : 'gone'),
    );
    child.on('error', () => end('gone'));
  });

  async function stop(): Promise<void> {
    child.ref();
    child.kill('SIGKILL');
    await gone;
  }

  const first = await withDeadline(Promise.race([nextMessage(child), gone]), readyMs);
  if (first !== 'ready') {
    await stop();
    throw new Error('A sandboxed process does not start');
  }
  return {
    async ask(request, deadlineMs) {
      const deadline = cpuDeadline(child.pid, deadlineMs);
      const answer = nextMessage(child) as Promise<SandboxAnswer>;
      const memory = memoryWatch(child.pid, (2 * options.memoryMb + baseMb) * bytesPerMb);
      try {
        // Sending fails only when the process has ended, and `gone` reports that.
        child.send(request, () => {});
        const outcome = await Promise.race([answer, gone, deadline.overdue, memory.exhausted]);
        if (typeof outcome === 'string') void stop();
        return outcome;
      } finally {
        deadline.clear();
        memory.clear();
      }
    },
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    stop,
  };
}

function forkChild({ module, memoryMb }: SandboxOptions): ChildProcess {
  const entry = fileURLToPath(
    new URL(`./sandbox-process${extname(import.meta.url)}`, import.meta.url),
  );
  // An import would load it in every executor.
  const { fork } = process.getBuiltinModule('node:child_process');
  const child = fork(entry, [module], {
    execArgv: [
      `--max-old-space-size=${memoryMb}`,
      '--max-semi-space-size=4',
      '--disallow-code-generation-from-strings',
      '--permission',
      ...codePaths().map((path) => `--allow-fs-read=${path}`),
    ],
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // Its own group: a terminal's Ctrl-C is for the parent, which then ends this one.
    detached: true,
  });
  child.unref();
  child.channel?.unref();
  return child;
}

/** Paths of the platform's code and of its libraries. */
function codePaths(): string[] {
  const source = fileURLToPath(new URL('../..', import.meta.url));
  const library = createRequire(import.meta.url).resolve('jsonata');
  return [
    join(source, '*'),
    join(packagesFolder(library), '*'),
    join(source, '..', 'package.json'),
  ];
}

/** The folder of all packages; pnpm gives each package a node_modules of its own below one folder. */
export function packagesFolder(library: string): string {
  const pnpm = join('node_modules', '.pnpm');
  const store = library.indexOf(pnpm);
  if (store !== -1) return library.slice(0, store + pnpm.length);
  const name = library.lastIndexOf('jsonata');
  return library.slice(0, library.lastIndexOf('node_modules', name) + 'node_modules'.length);
}

function nextMessage(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve) => {
    child.once('message', resolve);
  });
}

/** Resolves when the process exceeds its memory limit. */
function memoryWatch(
  pid: number | undefined,
  bytesMax: number,
): { exhausted: Promise<'exhausted'>; clear(): void } {
  const { promise, resolve } = Promise.withResolvers<'exhausted'>();
  const timer = setInterval(() => {
    if ((privateBytes(pid) ?? 0) > bytesMax) resolve('exhausted');
  }, memoryCheckMs);
  return { exhausted: promise, clear: () => clearInterval(timer) };
}

/**
 * Resolves with `late` when the process has used `ms` of processor time. On a busy machine it waits up to
 * `waitFactor` times longer, and then resolves with `held up`.
 */
function cpuDeadline(
  pid: number | undefined,
  ms: number,
): { overdue: Promise<Overdue>; clear(): void } {
  const { promise, resolve } = Promise.withResolvers<Overdue>();
  const cpuBefore = cpuMs(pid);
  const begun = performance.now();
  let timer: NodeJS.Timeout;
  let dueAt = begun;

  function wait(forMs: number): void {
    dueAt = performance.now() + forMs;
    timer = setTimeout(look, forMs);
  }

  function look(): void {
    const now = performance.now();
    // An answer that is already in the pipe is read first.
    const end = (how: Overdue) => setImmediate(() => resolve(how));
    const cpuNow = cpuMs(pid);
    if (now - dueAt > heldUpMs) end('held up');
    else if (cpuBefore === undefined || cpuNow === undefined) end('late');
    else if (cpuNow - cpuBefore >= ms * lateShare) end('late');
    else if (now - begun >= ms * waitFactor) end('held up');
    else wait(Math.max(ms * (1 - lateShare), ms - (cpuNow - cpuBefore)));
  }

  wait(ms);
  return { overdue: promise, clear: () => clearTimeout(timer) };
}
