/**
 * Mappings: JSONata expressions that make a skill's input of what a trigger was sent. An expression
 * may come from anyone and be written to never end or to fill the memory, so it is evaluated in a
 * process of its own with a deadline. Promises an answer within bounded time, that whoever asks for
 * much holds up nobody else for long, and that nothing is started before the first mapping.
 */
import { extname } from 'node:path';
import { parseJsonBody } from '../http/body.ts';
import { invalid, PlatformError } from '../kernel/errors.ts';
import type { EvaluationRequest, JsonataAnswer } from '../sandbox/jsonata.ts';
import { type Sandbox, startSandbox } from '../sandbox/sandbox.ts';

/** The module that the sandboxed processes import. */
const program = new URL(`../sandbox/jsonata${extname(import.meta.url)}`, import.meta.url).href;
const processesMax = 2;
/** Of heap; the largest body and its value fit several times. */
const memoryMb = 64;
const levelsMax = 5_000;
/** Of a value as JSON: as much as a request may bring. */
const valueBytesMax = 1_048_576;
/** How many may wait, and how many characters of JSON they may hold together. */
const waitingMax = 1_000;
const waitingCharsMax = 32 * 1024 * 1024;
/** Of both, what one owner may take. */
const ownerShare = 0.5;
/** A process that something else has killed is asked once more. */
const attemptsMax = 2;

export interface MappingLimits {
  /** Milliseconds of processor time that one evaluation may take. */
  readonly evaluationMs: number;
  /** Milliseconds from the request to the moment that its turn comes. */
  readonly waitMs: number;
}

const limitsDefault: MappingLimits = { evaluationMs: 500, waitMs: 5_000 };

/** What an expression sees. */
export interface MappingContext {
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
}

export interface Mappings {
  /** Reads an expression; `400` on the field mapping when it is none. */
  check(owner: string, expression: string): Promise<void>;
  /**
   * The value of an expression, undefined when it has none; `400` on the field mapping when it
   * fails, `503` when too many others wait or the platform was held up. Owners take turns.
   */
  evaluate(owner: string, expression: string, context: MappingContext): Promise<unknown>;
  /** Refuses whatever waits; resolves when the processes are gone. */
  stop(): Promise<void>;
}

interface Task {
  readonly owner: string;
  /** JSON text of what the expression sees; null when it is only to be read. */
  readonly context: string | null;
  readonly expression: string;
  resolve(json: string | null): void;
  reject(error: unknown): void;
  readonly expiry: NodeJS.Timeout;
}

export function createMappings(limits: Partial<MappingLimits> = {}): Mappings {
  const { evaluationMs, waitMs } = { ...limitsDefault, ...limits };
  const waiting: Task[] = [];
  const runningOf = new Map<string, number>();
  const idle: Sandbox[] = [];
  const started = new Set<Sandbox>();
  let running = 0;
  let isStopped = false;

  function submit(
    owner: string,
    expression: string,
    context: string | null,
  ): Promise<string | null> {
    const ofOwner = waiting.filter((task) => task.owner === owner);
    if (isStopped || isFull(waiting, 1) || isFull(ofOwner, ownerShare)) {
      return Promise.reject(tooBusy());
    }
    return new Promise((resolve, reject) => {
      const expiry = setTimeout(() => {
        waiting.splice(waiting.indexOf(task), 1);
        reject(tooBusy());
      }, waitMs);
      const task: Task = { owner, expression, context, resolve, reject, expiry };
      waiting.push(task);
      next();
    });
  }

  function next(): void {
    while (running < processesMax && waiting.length > 0) {
      // Whoever has nothing running goes first, so that a slow owner keeps no other waiting.
      const fair = waiting.findIndex(({ owner }) => !runningOf.has(owner));
      const [task] = waiting.splice(Math.max(0, fair), 1) as [Task];
      clearTimeout(task.expiry);
      count(task.owner, 1);
      void answer(task)
        .then(task.resolve, task.reject)
        .finally(() => {
          count(task.owner, -1);
          next();
        });
    }
  }

  function count(owner: string, change: 1 | -1): void {
    running += change;
    const left = (runningOf.get(owner) ?? 0) + change;
    if (left === 0) runningOf.delete(owner);
    else runningOf.set(owner, left);
  }

  async function answer({ expression, context }: Task): Promise<string | null> {
    const order: EvaluationRequest = { expression, context, levels: levelsMax, valueBytesMax };
    for (let attempt = 1; attempt <= attemptsMax; attempt++) {
      const sandbox = idle.pop() ?? (await start());
      const outcome = await sandbox.ask({ function: 'evaluate', input: order }, evaluationMs);
      if (typeof outcome === 'object') {
        idle.push(sandbox);
        if ('error' in outcome) throw invalid('mapping', outcome.error);
        const given = outcome.value as JsonataAnswer;
        if ('fault' in given) throw invalid('mapping', given.fault);
        return given.json;
      }
      started.delete(sandbox);
      if (outcome === 'late') throw invalid('mapping', `takes longer than ${evaluationMs} ms`);
      if (outcome === 'exhausted') throw invalid('mapping', 'needs too much memory');
      if (outcome === 'held up') break;
    }
    throw heldUp();
  }

  async function start(): Promise<Sandbox> {
    const sandbox = await startSandbox({ module: program, memoryMb }).catch((cause: unknown) => {
      throw tooBusy(cause);
    });
    started.add(sandbox);
    if (!isStopped) return sandbox;
    await sandbox.stop();
    throw tooBusy();
  }

  return {
    async check(owner, expression) {
      await submit(owner, expression, null);
    },

    async evaluate(owner, expression, context) {
      const json = await submit(owner, expression, JSON.stringify(context));
      return json === null ? undefined : cleanValue(json);
    },

    async stop() {
      isStopped = true;
      for (const task of waiting.splice(0)) {
        clearTimeout(task.expiry);
        task.reject(tooBusy());
      }
      await Promise.all([...started].map((sandbox) => sandbox.stop()));
    },
  };
}

function isFull(tasks: readonly Task[], share: number): boolean {
  const chars = tasks.reduce((sum, { context }) => sum + (context?.length ?? 0), 0);
  return tasks.length >= waitingMax * share || chars >= waitingCharsMax * share;
}

/** What an expression made is held to the rules of a body. */
function cleanValue(json: string): unknown {
  try {
    return parseJsonBody(Buffer.from(json));
  } catch (error) {
    const [fault] = (error as PlatformError).extras?.details ?? [];
    throw invalid('mapping', `gives what no request may bring: it ${fault?.issue ?? 'is broken'}`);
  }
}

function tooBusy(cause?: unknown): PlatformError {
  return unavailable('Too many mappings wait to be evaluated', cause);
}

/** Nobody knows what the mapping would have given, so the sender is not told that it is wrong. */
function heldUp(): PlatformError {
  return unavailable('The mapping could not be evaluated in time');
}

function unavailable(message: string, cause?: unknown): PlatformError {
  return new PlatformError('service_unavailable', message, {
    retryAfter: 1,
    ...(cause === undefined ? {} : { cause }),
  });
}
