/**
 * Runs a computation whose time or memory depends on hostile input (an expression, a template, a
 * document) in a sandboxed process (src/adapters/sandbox). Promises that it ends by its deadline, that it ends
 * at once when the run is aborted, that its heap is bounded, and that it reaches no file, network or
 * environment; meanwhile the executor stays free for its other runs.
 */

import { type NoAnswer, type Sandbox, startSandbox } from '../../../../adapters/sandbox/sandbox.ts';
import type { SandboxAnswer } from '../../../../adapters/sandbox/sandbox-process.ts';
import { SkillError } from '../../definition.ts';

export interface SandboxTask {
  /** `import.meta.url` of the module that exports the function. */
  readonly module: string;
  /** Name of the exported function; it takes `input` and returns what JSON can carry. */
  readonly function: string;
  readonly input: unknown;
  readonly signal: AbortSignal;
  /** Milliseconds of processor time. */
  readonly timeoutMs: number;
  /** MB of heap; 128 when left out. */
  readonly memoryMb?: number;
  /**
   * Whether the process may serve further tasks. Only for a module that gives each task its own realm.
   * Otherwise the process ends with this task, so that a hostile document cannot affect a later one.
   */
  readonly reusable?: boolean;
}

const memoryMbDefault = 128;
/** Few, because there is an executor for each core. */
export const sandboxesMax = 2;
/** How long an idle process is kept for further tasks. */
const idleMs = 30_000;

let free = sandboxesMax;
const waiting: (() => void)[] = [];
const idle = new Map<string, { sandbox: Sandbox; expiry: NodeJS.Timeout }>();

/**
 * Returns the function's result. Rejects with a SkillError that has the function's message, with one for
 * too much time or memory (not retryable, because the same input would fail again), or with the signal's
 * reason.
 */
export async function inSandbox<Result>(task: SandboxTask): Promise<Result> {
  await takeSlot(task.signal);
  try {
    const kept = takeKept(task.module);
    let outcome = kept === undefined ? 'gone' : await outcomeOf(kept, task);
    // A kept process may have ended unnoticed before it was asked, which is not the task's fault.
    if (outcome === 'gone') outcome = await outcomeOf(await start(task), task);
    const answer = answerIn(outcome, task);
    if ('error' in answer) throw refused(answer.error);
    return answer.value as Result;
  } finally {
    freeSlot();
  }
}

/** Waits until fewer than `sandboxesMax` tasks run, or the signal aborts. */
async function takeSlot(signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (free > 0) {
    free -= 1;
    return;
  }
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const abandon = () => {
    waiting.splice(waiting.indexOf(resolve), 1);
    reject(signal.reason);
  };
  waiting.push(resolve);
  signal.addEventListener('abort', abandon, { once: true });
  await promise.finally(() => signal.removeEventListener('abort', abandon));
}

function freeSlot(): void {
  const next = waiting.shift();
  if (next === undefined) free += 1;
  else next();
}

/** The process that was kept for tasks of this module, unless it has ended. */
function takeKept(module: string): Sandbox | undefined {
  const kept = idle.get(module);
  if (kept === undefined) return undefined;
  clearTimeout(kept.expiry);
  idle.delete(module);
  return kept.sandbox.hasEnded() ? undefined : kept.sandbox;
}

async function start({ module, memoryMb = memoryMbDefault }: SandboxTask): Promise<Sandbox> {
  try {
    return await startSandbox({ module, memoryMb });
  } catch (cause) {
    throw new SkillError('No process could be started for this', { cause });
  }
}

/** Keeps the process for the next task of its kind, or ends it. */
function release(sandbox: Sandbox, { module, reusable = false }: SandboxTask): void {
  if (!reusable || idle.has(module)) {
    void sandbox.stop();
    return;
  }
  const expiry = setTimeout(() => {
    idle.delete(module);
    void sandbox.stop();
  }, idleMs);
  expiry.unref();
  idle.set(module, { sandbox, expiry });
}

/** What comes of the task in this process, or the first reason not to wait any longer. */
async function outcomeOf(sandbox: Sandbox, task: SandboxTask): Promise<SandboxAnswer | NoAnswer> {
  const { signal, timeoutMs } = task;
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    signal.throwIfAborted();
    const order = { function: task.function, input: task.input };
    const asked = sandbox.ask(order, timeoutMs).catch((cause: unknown) => {
      const message = 'The input is too large or nested too deeply';
      throw new SkillError(message, { retryable: false, cause });
    });
    const outcome = await Promise.race([asked, aborted.promise]);
    if (typeof outcome === 'object') release(sandbox, task);
    return outcome;
  } catch (error) {
    void sandbox.stop();
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

function answerIn(outcome: SandboxAnswer | NoAnswer, task: SandboxTask): SandboxAnswer {
  if (typeof outcome === 'object') return outcome;
  const { timeoutMs, memoryMb = memoryMbDefault } = task;
  switch (outcome) {
    case 'late':
      throw refused(`This takes longer than ${timeoutMs / 1000} s`);
    case 'exhausted':
      throw refused(`This needs more than ${memoryMb} MB of memory`);
    case 'held up':
      throw new SkillError('The machine was too busy to do this in time');
    case 'gone':
      throw new SkillError('The process that did this ended without a result');
  }
}

function refused(message: string): SkillError {
  return new SkillError(message, { retryable: false });
}
