/**
 * The parent's side of a sandboxed process, in which strangers' programs and documents are read:
 * started with next to no rights, asked one thing at a time, killed at the deadline. It is a process
 * and not a thread, because a thread has all rights of its process, some loops of V8 cannot be
 * interrupted, and one allocation that is large enough ends the process of a thread whatever the
 * thread's own limits say.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cpuMs, ownBytes } from './proc.ts';
import type { SandboxAnswer, SandboxOrder } from './sandbox-process.ts';

export interface SandboxOptions {
  /** `import.meta.url` of the module whose functions are called, a file of this project. */
  readonly module: string;
  /** Megabytes of heap. The whole process may have twice that and `baseMb` (where that can be told). */
  readonly memoryMb: number;
}

/** What the process has beside heap and buffers. */
const baseMb = 128;
/** Buffers are no part of the heap, so the memory of the whole process is looked at this often. */
const memoryCheckMs = 100;
const bytesPerMb = 1024 * 1024;
/** Reading the code of libraries, on a busy machine. */
const readyMs = 30_000;
/** A deadline that is noticed this much later says that the parent was held up, not the process. */
const heldUpMs = 250;
/** The share of its deadline that a process must have computed before it is late. */
const lateShare = 0.9;
/** A process that gets less of the processor is waited for this many times its deadline. */
const waitFactor = 10;
/** How V8 ends a process that needs more than it may. */
const exhaustionSignals: readonly (string | null)[] = ['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV'];

/**
 * No answer: it computed too long, it took too much memory, or the process died of something else.
 * `held up` when there was none because the machine or the parent had no time for it.
 */
export type NoAnswer = Overdue | 'exhausted' | 'gone';
type Overdue = 'late' | 'held up';

export interface Sandbox {
  /**
   * Calls a function of the module. Rejects when the input cannot be written as JSON. `deadlineMs` is processor time where that can be told (Linux),
   * else time on the clock. No answer means that the process has ended.
   */
  ask(order: SandboxOrder, deadlineMs: number): Promise<SandboxAnswer | NoAnswer>;
  /** Kills the process; resolves when it is gone. */
  stop(): Promise<void>;
}

/** Rejects when the process is not ready in time. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const child = forkChild(options);
  const guard = guardAgainstOrphan(child);
  const gone = new Promise<NoAnswer>((resolve) => {
    const end = (how: NoAnswer) => {
      guard?.kill('SIGKILL');
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

  const overdue = Promise.withResolvers<'late'>();
  const timer = setTimeout(() => overdue.resolve('late'), readyMs);
  const first = await Promise.race([nextMessage(child), gone, overdue.promise]);
  clearTimeout(timer);
  if (first !== 'ready') {
    await stop();
    throw new Error('A sandboxed process does not start');
  }
  return {
    async ask(order, deadlineMs) {
      const deadline = cpuDeadline(child.pid, deadlineMs);
      const answer = nextMessage(child) as Promise<SandboxAnswer>;
      const memory = memoryWatch(child.pid, (2 * options.memoryMb + baseMb) * bytesPerMb);
      try {
        // A failure to send is the end of the process, which is heard of anyway.
        child.send(order, () => {});
        const outcome = await Promise.race([answer, gone, deadline.overdue, memory.exhausted]);
        if (typeof outcome === 'string') void stop();
        return outcome;
      } finally {
        deadline.clear();
        memory.clear();
      }
    },
    stop,
  };
}

function forkChild({ module, memoryMb }: SandboxOptions): ChildProcess {
  const entry = fileURLToPath(
    new URL(`./sandbox-process${extname(import.meta.url)}`, import.meta.url),
  );
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

/** Our own code and that of the libraries. */
function codePaths(): string[] {
  const source = fileURLToPath(new URL('..', import.meta.url));
  const library = createRequire(import.meta.url).resolve('jsonata');
  const libraries = library.slice(0, library.lastIndexOf('jsonata'));
  const modules = libraries.slice(0, libraries.lastIndexOf('node_modules') + 'node_modules'.length);
  return [join(source, '*'), join(modules, '*'), join(source, '..', 'package.json')];
}

/**
 * A process whose event loop a program blocks does not see that its parent was killed; a shell that
 * waits for the end of its input does, and ends it.
 */
function guardAgainstOrphan({ pid }: ChildProcess): ChildProcess | undefined {
  if (pid === undefined || process.platform === 'win32') return undefined;
  const script = 'while read -r line; do :; done; kill -s KILL "$1" 2>/dev/null';
  const shell = spawn('/bin/sh', ['-c', script, 'sandbox-orphan-guard', String(pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
    env: {},
  });
  // Where there is no shell, the process is on its own.
  shell.on('error', () => {});
  shell.stdin?.on('error', () => {});
  shell.unref();
  return shell;
}

function nextMessage(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve) => {
    child.once('message', resolve);
  });
}

/** Resolves when the process has more memory than it may. */
function memoryWatch(
  pid: number | undefined,
  bytesMax: number,
): { exhausted: Promise<'exhausted'>; clear(): void } {
  const { promise, resolve } = Promise.withResolvers<'exhausted'>();
  const timer = setInterval(() => {
    if ((ownBytes(pid) ?? 0) > bytesMax) resolve('exhausted');
  }, memoryCheckMs);
  return { exhausted: promise, clear: () => clearInterval(timer) };
}

/**
 * Resolves when the process has computed for `ms`. One that was given less of the processor, on a
 * busy machine, is waited for longer, and is `held up` in the end.
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
    // An answer that lies in the pipe is read before the turn ends.
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
