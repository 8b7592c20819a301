/**
 * The platform's side of one process that evaluates mappings: started with next to no rights, asked
 * one thing at a time, killed at the deadline. It is a process and not a thread, because one
 * allocation that is large enough (`$pad("x", 500000000)`) ends the process of a thread whatever the
 * thread's own limits say.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MappingAnswer, MappingOrder } from './mapping-process.ts';

/** Of heap; the largest body and its value fit several times. */
const heapMb = 64;
const readyMs = 10_000;
/** A deadline that is noticed this much later says that the platform was held up, not the process. */
const heldUpMs = 250;
/** How V8 ends a process that needs more than it may. */
const exhaustionSignals: readonly (string | null)[] = ['SIGABRT', 'SIGTRAP', 'SIGILL', 'SIGSEGV'];

/**
 * No answer: it took too long, it took too much memory, or the process died of something else. `held
 * up` when there was none at the deadline, which the platform itself came to late.
 */
export type NoAnswer = Overdue | 'exhausted' | 'gone';
type Overdue = 'late' | 'held up';

export interface MappingRunner {
  /** Asks; whatever is no answer is the end of the process. */
  ask(order: MappingOrder, deadlineMs: number): Promise<MappingAnswer | NoAnswer>;
  /** Resolves when the process is gone. */
  stop(): Promise<void>;
}

/** Rejects when the process is not ready in time. */
export async function startMappingRunner(): Promise<MappingRunner> {
  const child = forkChild();
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

  const first = await withDeadline([nextMessage(child), gone], readyMs);
  if (first !== 'ready') {
    await stop();
    throw new Error('The process that evaluates mappings does not start');
  }
  return {
    async ask(order, deadlineMs) {
      const answer = nextMessage(child) as Promise<MappingAnswer>;
      // A failure to send is the end of the process, which is heard of anyway.
      child.send(order, () => {});
      const outcome = await withDeadline([answer, gone], deadlineMs);
      if (outcome === 'late' || outcome === 'held up') void stop();
      return outcome;
    },
    stop,
  };
}

function forkChild(): ChildProcess {
  const entry = fileOf(`./mapping-process${extname(import.meta.url)}`);
  const library = createRequire(import.meta.url).resolve('jsonata');
  const realm = fileOf(`./mapping-realm${extname(import.meta.url)}`);
  const readable = [entry, realm, fileOf('../../package.json'), library];
  const child = fork(entry, [library], {
    execArgv: [
      `--max-old-space-size=${heapMb}`,
      '--max-semi-space-size=4',
      '--disallow-code-generation-from-strings',
      '--permission',
      ...readable.map((path) => `--allow-fs-read=${path}`),
    ],
    env: {},
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // Its own group: a terminal's Ctrl-C is for the platform, which then ends this one.
    detached: true,
  });
  child.unref();
  child.channel?.unref();
  return child;
}

function fileOf(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

/**
 * A process whose event loop an expression blocks does not see that the platform was killed; a shell
 * that waits for the end of its input does, and ends it.
 */
function guardAgainstOrphan({ pid }: ChildProcess): ChildProcess | undefined {
  if (pid === undefined || process.platform === 'win32') return undefined;
  const script = 'while read -r line; do :; done; kill -s KILL "$1" 2>/dev/null';
  const shell = spawn('/bin/sh', ['-c', script, 'mapping-orphan-guard', String(pid)], {
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

/** The first of the events, or what is to be said when none has come within `ms`. */
async function withDeadline<A, B>(
  events: readonly [Promise<A>, Promise<B>],
  ms: number,
): Promise<A | B | Overdue> {
  const { promise: overdue, resolve } = Promise.withResolvers<Overdue>();
  const begun = performance.now();
  const timer = setTimeout(() => {
    const isHeldUp = performance.now() - begun > ms + heldUpMs;
    // An answer that lies in the pipe is read before the turn ends.
    setImmediate(() => resolve(isHeldUp ? 'held up' : 'late'));
  }, ms);
  try {
    return await Promise.race([...events, overdue]);
  } finally {
    clearTimeout(timer);
  }
}
