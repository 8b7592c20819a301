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
import { nodeArguments } from '../../kernel/node-program.ts';
import { OrphanGuard } from '../../kernel/orphan-guard.ts';
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

export class Sandbox {
  readonly #child: ChildProcess;
  readonly #bytesMax: number;
  readonly #gone: Promise<NoAnswer>;

  /** The process is not ready yet: `startSandbox` waits for it. */
  constructor(options: SandboxOptions) {
    const child = forkChild(options);
    this.#child = child;
    this.#bytesMax = (2 * options.memoryMb + baseMb) * bytesPerMb;
    const guard = new OrphanGuard('sandbox-orphan-guard', () => {});
    guard.add(child.pid);
    this.#gone = new Promise<NoAnswer>((resolve) => {
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
  }

  /** Waits until the process takes requests; rejects when it is not ready in time. */
  async ready(): Promise<void> {
    const first = await withDeadline(Promise.race([nextMessage(this.#child), this.#gone]), readyMs);
    if (first === 'ready') return;
    await this.stop();
    throw new Error('A sandboxed process does not start');
  }

  /**
   * Calls a function of the module. Rejects when the input cannot be written as JSON. `deadlineMs` is
   * processor time on Linux, and elapsed time elsewhere. After `NoAnswer` the process has ended.
   */
  async ask(request: SandboxRequest, deadlineMs: number): Promise<SandboxAnswer | NoAnswer> {
    const child = this.#child;
    const deadline = new CpuDeadline(child.pid, deadlineMs);
    const answer = nextMessage(child) as Promise<SandboxAnswer>;
    const memory = new MemoryWatch(child.pid, this.#bytesMax);
    try {
      // Sending fails only when the process has ended, and `#gone` reports that.
      child.send(request, () => {});
      const ends = [answer, this.#gone, deadline.overdue, memory.exhausted];
      const outcome = await Promise.race(ends);
      if (typeof outcome === 'string') void this.stop();
      return outcome;
    } finally {
      deadline.clear();
      memory.clear();
    }
  }

  /** Whether the process has ended, as far as this process knows. */
  hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Kills the process; resolves when it is gone. */
  async stop(): Promise<void> {
    this.#child.ref();
    this.#child.kill('SIGKILL');
    await this.#gone;
  }
}

/** Rejects when the process is not ready in time. */
export async function startSandbox(options: SandboxOptions): Promise<Sandbox> {
  const sandbox = new Sandbox(options);
  await sandbox.ready();
  return sandbox;
}

function forkChild({ module, memoryMb }: SandboxOptions): ChildProcess {
  const entry = fileURLToPath(
    new URL(`./sandbox-process${extname(import.meta.url)}`, import.meta.url),
  );
  // An import would load it in every executor.
  const { fork } = process.getBuiltinModule('node:child_process');
  const child = fork(entry, [module], {
    execArgv: nodeArguments([
      `--max-old-space-size=${memoryMb}`,
      '--max-semi-space-size=4',
      '--disallow-code-generation-from-strings',
      '--permission',
      ...codePaths().map((path) => `--allow-fs-read=${path}`),
    ]),
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

/** `exhausted` resolves when the process exceeds its memory limit. */
class MemoryWatch {
  readonly exhausted: Promise<'exhausted'>;
  readonly #timer: NodeJS.Timeout;

  constructor(pid: number | undefined, bytesMax: number) {
    const { promise, resolve } = Promise.withResolvers<'exhausted'>();
    this.exhausted = promise;
    this.#timer = setInterval(() => {
      if ((privateBytes(pid) ?? 0) > bytesMax) resolve('exhausted');
    }, memoryCheckMs);
  }

  clear(): void {
    clearInterval(this.#timer);
  }
}

/**
 * `overdue` resolves with `late` when the process has used `ms` of processor time. On a busy machine it waits up
 * to `waitFactor` times longer, and then resolves with `held up`.
 */
class CpuDeadline {
  readonly #pid: number | undefined;
  readonly #ms: number;
  readonly #cpuBefore: number | undefined;
  readonly #begun = performance.now();
  readonly #end = Promise.withResolvers<Overdue>();
  #timer: NodeJS.Timeout | undefined;
  #dueAt = 0;

  constructor(pid: number | undefined, ms: number) {
    this.#pid = pid;
    this.#ms = ms;
    this.#cpuBefore = cpuMs(pid);
    this.#wait(ms);
  }

  get overdue(): Promise<Overdue> {
    return this.#end.promise;
  }

  clear(): void {
    clearTimeout(this.#timer);
  }

  #wait(forMs: number): void {
    this.#dueAt = performance.now() + forMs;
    this.#timer = setTimeout(() => this.#check(), forMs);
  }

  #check(): void {
    const now = performance.now();
    const ms = this.#ms;
    const cpuBefore = this.#cpuBefore;
    const cpuNow = cpuMs(this.#pid);
    // An answer that is already in the pipe is read first.
    const end = (how: Overdue) => setImmediate(() => this.#end.resolve(how));
    if (now - this.#dueAt > heldUpMs) end('held up');
    else if (cpuBefore === undefined || cpuNow === undefined) end('late');
    else if (cpuNow - cpuBefore >= ms * lateShare) end('late');
    else if (now - this.#begun >= ms * waitFactor) end('held up');
    else this.#wait(Math.max(ms * (1 - lateShare), ms - (cpuNow - cpuBefore)));
  }
}
