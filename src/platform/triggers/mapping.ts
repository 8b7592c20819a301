/**
 * Mappings: JSONata expressions that turn a call of a trigger into a skill's input. Expressions are
 * untrusted: one may loop endlessly or fill the memory. A sandboxed process evaluates them, each with a
 * deadline. Owners take turns. The first mapping starts the first process.
 */
import { extname } from 'node:path';
import { parseJsonBody } from '../../adapters/http/body.ts';
import type { EvaluationRequest, JsonataAnswer } from '../../adapters/sandbox/jsonata.ts';
import { type Sandbox, startSandbox } from '../../adapters/sandbox/sandbox.ts';
import { bind } from '../../kernel/bind.ts';
import { invalid, PlatformError } from '../../kernel/errors.ts';

/** The module that the sandboxed processes import. */
const program = new URL(
  `../../adapters/sandbox/jsonata${extname(import.meta.url)}`,
  import.meta.url,
).href;
const processesMax = 2;
/** Heap of one process; the largest body and its result fit several times. */
const memoryMb = 64;
const levelsMax = 5_000;
/** Bytes of the result as JSON; the same as for a request body. */
const valueBytesMax = 1_048_576;
/** Evaluations that may wait, and the characters of JSON that they may hold together. */
const waitingMax = 1_000;
const waitingCharsMax = 32 * 1024 * 1024;
/** The share of one owner in both. */
const ownerShare = 0.5;
/** An evaluation is tried once more when its process was killed from outside. */
const attemptsMax = 2;

export interface MappingLimits {
  /** Milliseconds of processor time that one evaluation may take. */
  readonly evaluationMs: number;
  /** Milliseconds that an evaluation may wait for its turn. */
  readonly waitMs: number;
}

const limitsDefault: MappingLimits = { evaluationMs: 500, waitMs: 5_000 };

/** The value that an expression is evaluated on. */
export interface MappingContext {
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
}

interface Task {
  readonly owner: string;
  /** The context as JSON text; null when the expression is only to be parsed. */
  readonly context: string | null;
  readonly expression: string;
  resolve(json: string | null): void;
  reject(error: unknown): void;
  readonly expiry: NodeJS.Timeout;
}

interface MappingState extends MappingLimits {
  readonly waiting: Task[];
  /** Running evaluations by owner. */
  readonly runningOf: Map<string, number>;
  readonly idle: Sandbox[];
  readonly started: Set<Sandbox>;
  running: number;
  isStopped: boolean;
}

export type Mappings = ReturnType<typeof createMappings>;

export function createMappings(limits: Partial<MappingLimits> = {}) {
  const state: MappingState = {
    ...limitsDefault,
    ...limits,
    waiting: [],
    runningOf: new Map(),
    idle: [],
    started: new Set(),
    running: 0,
    isStopped: false,
  };
  return bind(state, { check, evaluate, stop });
}

/** Parses an expression; throws `400` on the field `mapping` for an invalid one. */
async function check(state: MappingState, owner: string, expression: string): Promise<void> {
  await submit(state, owner, expression, null);
}

/**
 * The value of an expression, undefined when it has none. Throws `400` on the field `mapping` when it
 * fails, and `503` when too many evaluations wait or the platform was held up. Owners take turns.
 */
async function evaluate(
  state: MappingState,
  owner: string,
  expression: string,
  context: MappingContext,
): Promise<unknown> {
  const json = await submit(state, owner, expression, JSON.stringify(context));
  return json === null ? undefined : cleanValue(json);
}

function submit(
  state: MappingState,
  owner: string,
  expression: string,
  context: string | null,
): Promise<string | null> {
  const { waiting, waitMs, isStopped } = state;
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
    startNext(state);
  });
}

function startNext(state: MappingState): void {
  const { waiting, runningOf } = state;
  while (state.running < processesMax && waiting.length > 0) {
    // An owner without a running evaluation goes first, so that a slow owner delays no other.
    const fair = waiting.findIndex(({ owner }) => !runningOf.has(owner));
    const [task] = waiting.splice(Math.max(0, fair), 1) as [Task];
    clearTimeout(task.expiry);
    count(state, task.owner, 1);
    void answer(state, task)
      .then(task.resolve, task.reject)
      .finally(() => {
        count(state, task.owner, -1);
        startNext(state);
      });
  }
}

function count(state: MappingState, owner: string, change: 1 | -1): void {
  state.running += change;
  const left = (state.runningOf.get(owner) ?? 0) + change;
  if (left === 0) state.runningOf.delete(owner);
  else state.runningOf.set(owner, left);
}

async function answer(state: MappingState, { expression, context }: Task): Promise<string | null> {
  const { idle, started, evaluationMs } = state;
  const order: EvaluationRequest = { expression, context, levels: levelsMax, valueBytesMax };
  let kept = takeIdle(state);
  // An idle process may have ended unnoticed, which is no attempt.
  for (let attempt = kept === undefined ? 1 : 0; attempt <= attemptsMax; attempt++) {
    const sandbox = kept ?? (await start(state));
    kept = undefined;
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
  // `503` and not `400`, because the mapping itself may be fine.
  throw unavailable('The mapping could not be evaluated in time');
}

/** An idle process that has not ended, as far as is known. */
function takeIdle({ idle, started }: MappingState): Sandbox | undefined {
  for (let sandbox = idle.pop(); sandbox !== undefined; sandbox = idle.pop()) {
    if (!sandbox.hasEnded()) return sandbox;
    started.delete(sandbox);
  }
  return undefined;
}

async function start(state: MappingState): Promise<Sandbox> {
  const sandbox = await startSandbox({ module: program, memoryMb }).catch((cause: unknown) => {
    throw tooBusy(cause);
  });
  state.started.add(sandbox);
  if (!state.isStopped) return sandbox;
  await sandbox.stop();
  throw tooBusy();
}

/** Refuses the waiting evaluations; resolves when the processes have ended. */
async function stop(state: MappingState): Promise<void> {
  state.isStopped = true;
  for (const task of state.waiting.splice(0)) {
    clearTimeout(task.expiry);
    task.reject(tooBusy());
  }
  await Promise.all([...state.started].map((sandbox) => sandbox.stop()));
}

function isFull(tasks: readonly Task[], share: number): boolean {
  const chars = tasks.reduce((sum, { context }) => sum + (context?.length ?? 0), 0);
  return tasks.length >= waitingMax * share || chars >= waitingCharsMax * share;
}

/** Applies the rules for request bodies to the result of an expression. */
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

function unavailable(message: string, cause?: unknown): PlatformError {
  return new PlatformError('service_unavailable', message, {
    retryAfter: 1,
    ...(cause === undefined ? {} : { cause }),
  });
}
