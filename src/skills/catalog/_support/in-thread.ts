/**
 * Runs a computation whose time or memory depends on hostile input (an expression, a template, a
 * document) in a thread of its own. Promises that it ends by its deadline, that it ends at once
 * when the run is aborted, and that its heap is bounded; meanwhile the executor stays free for its
 * other runs. A thread is no boundary against malice, and needs none: no code comes from outside.
 */

import { Worker } from 'node:worker_threads';
import { SkillError } from '../../definition.ts';
import type { ThreadAnswer, ThreadOrder } from './thread.ts';

export interface ThreadTask {
  /** `import.meta.url` of the module that exports the function. */
  readonly module: string;
  /** Name of the exported function; it takes `input` and returns what can be cloned. */
  readonly function: string;
  readonly input: unknown;
  readonly signal: AbortSignal;
  /** Milliseconds from the start of the thread. */
  readonly timeoutMs: number;
  /** Of heap; 128 when left out. */
  readonly memoryMb?: number;
}

const memoryMbDefault = 128;
/** There is an executor for each core, and what its threads hold counts as the executor's memory. */
export const threadsMax = 2;

let free = threadsMax;
const waiting: (() => void)[] = [];

/**
 * Returns what the function returns. Fails with its SkillError, with one of its own for the time or
 * the memory (not retryable: the same input would need them again), or with the signal's reason.
 */
export async function inThread<Result>(task: ThreadTask): Promise<Result> {
  await takePlace(task.signal);
  let worker: Worker;
  try {
    task.signal.throwIfAborted();
    worker = start(task);
  } catch (error) {
    givePlace();
    // Whatever fails at once is the input, which has to be copied.
    throw task.signal.aborted ? error : cannotCopy(error);
  }
  try {
    return (await ending(worker, task)) as Result;
  } finally {
    // A thread that is stopped in the middle takes a moment, for which the run does not wait. (V8
    // has loops that it cannot interrupt, `for (;;) new Array(9).fill(0)` for one; such a thread
    // keeps its place until the executor ends.)
    void worker.terminate().finally(givePlace);
  }
}

/** Waits until fewer than `threadsMax` threads run, or the signal aborts. */
async function takePlace(signal: AbortSignal): Promise<void> {
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

function givePlace(): void {
  const next = waiting.shift();
  if (next === undefined) free += 1;
  else next();
}

function start(task: ThreadTask): Worker {
  const order: ThreadOrder = { module: task.module, function: task.function, input: task.input };
  const worker = new Worker(new URL('thread.ts', import.meta.url), {
    workerData: order,
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: task.memoryMb ?? memoryMbDefault },
  });
  // What a library prints is nobody's to read.
  worker.stdout.resume();
  worker.stderr.resume();
  return worker;
}

/** The thread's answer, or the first reason not to wait for it any longer. */
async function ending(worker: Worker, task: ThreadTask): Promise<unknown> {
  const { signal, timeoutMs } = task;
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const deadline = setTimeout(() => {
    reject(new SkillError(`This takes longer than ${timeoutMs / 1000} s`, { retryable: false }));
  }, timeoutMs);
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  worker.on('message', (answer: ThreadAnswer) => {
    if ('error' in answer) reject(new SkillError(answer.error, { retryable: false }));
    else resolve(answer.result);
  });
  worker.on('error', (error) => reject(fatal(error, task.memoryMb ?? memoryMbDefault)));
  worker.on('exit', () => reject(new SkillError('The thread ended without a result')));
  try {
    return await promise;
  } finally {
    clearTimeout(deadline);
    signal.removeEventListener('abort', abort);
  }
}

function cannotCopy(cause: unknown): SkillError {
  const message = 'The input is too large or nested too deeply';
  return new SkillError(message, { retryable: false, cause });
}

function fatal(cause: unknown, memoryMb: number): SkillError {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') {
    const message = `This needs more than ${memoryMb} MB of memory`;
    return new SkillError(message, { retryable: false, cause });
  }
  const reason = cause instanceof Error ? cause.message : String(cause);
  const retryable = code === 'ERR_WORKER_INIT_FAILED';
  return new SkillError(`The thread failed: ${reason}`, { retryable, cause });
}
