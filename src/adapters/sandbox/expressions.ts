/**
 * JSONata expressions of clients: mappings of triggers, rules of agents. Expressions are untrusted: one may loop
 * endlessly or fill the memory. A sandboxed process evaluates them, each with a deadline. Owners take turns. The
 * first expression starts the first process.
 */
import { extname } from 'node:path';
import { invalid, PlatformError } from '../../kernel/errors.ts';
import { parseJsonBody } from '../http/body.ts';
import type { EvaluationRequest, JsonataAnswer } from './jsonata.ts';
import { type Sandbox, startSandbox } from './sandbox.ts';

/** The module that the sandboxed processes import. */
const program = new URL(`./jsonata${extname(import.meta.url)}`, import.meta.url).href;
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

export interface ExpressionLimits {
  /** Milliseconds of processor time that one evaluation may take. */
  readonly evaluationMs: number;
  /** Milliseconds that an evaluation may wait for its turn. */
  readonly waitMs: number;
}

const limitsDefault: ExpressionLimits = { evaluationMs: 500, waitMs: 5_000 };

interface Task {
  readonly owner: string;
  /** The field of a request that the expression is, which refusals name. */
  readonly field: string;
  /** The context as JSON text; null to parse the expression only. */
  readonly context: string | null;
  readonly expression: string;
  /** Of one that is parsed only: the fields that its input has. */
  readonly names?: readonly string[] | undefined;
  readonly result: PromiseWithResolvers<string | null>;
  readonly expiry: NodeJS.Timeout;
}

export class Expressions {
  readonly #limits: ExpressionLimits;
  readonly #waiting: Task[] = [];
  /** Running evaluations by owner. */
  readonly #runningOf = new Map<string, number>();
  readonly #idle: Sandbox[] = [];
  readonly #started = new Set<Sandbox>();
  #running = 0;
  #isStopped = false;

  constructor(limits: Partial<ExpressionLimits> = {}) {
    this.#limits = { ...limitsDefault, ...limits };
  }

  /** Parses an expression; throws `400` on the field for an invalid one, or one that reads other `names` of its input. */
  async check(
    owner: string,
    expression: string,
    field = 'mapping',
    names?: readonly string[],
  ): Promise<void> {
    await this.#submit(owner, expression, null, field, names);
  }

  /**
   * The value of an expression, undefined when it has none. Throws `400` on the field when it
   * fails, and `503` when too many evaluations wait or the platform was held up. Owners take turns.
   */
  async evaluate(
    owner: string,
    expression: string,
    context: object,
    field = 'mapping',
  ): Promise<unknown> {
    const json = await this.#submit(owner, expression, JSON.stringify(context), field);
    return json === null ? undefined : cleanValue(json, field);
  }

  /** Refuses the waiting evaluations; resolves when the processes have ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    for (const task of this.#waiting.splice(0)) {
      clearTimeout(task.expiry);
      task.result.reject(tooBusy());
    }
    await Promise.all([...this.#started].map((sandbox) => sandbox.stop()));
  }

  #submit(
    owner: string,
    expression: string,
    context: string | null,
    field: string,
    names?: readonly string[],
  ): Promise<string | null> {
    const waiting = this.#waiting;
    const ofOwner = waiting.filter((task) => task.owner === owner);
    if (this.#isStopped || isFull(waiting, 1) || isFull(ofOwner, ownerShare)) {
      return Promise.reject(tooBusy());
    }
    const result = Promise.withResolvers<string | null>();
    const expiry = setTimeout(() => {
      waiting.splice(waiting.indexOf(task), 1);
      result.reject(tooBusy());
    }, this.#limits.waitMs);
    const task: Task = { owner, field, expression, context, names, result, expiry };
    waiting.push(task);
    this.#startNext();
    return result.promise;
  }

  #startNext(): void {
    const waiting = this.#waiting;
    while (this.#running < processesMax && waiting.length > 0) {
      // An owner without a running evaluation goes first, so that a slow owner delays no other.
      const fair = waiting.findIndex(({ owner }) => !this.#runningOf.has(owner));
      const [task] = waiting.splice(Math.max(0, fair), 1) as [Task];
      clearTimeout(task.expiry);
      this.#count(task.owner, 1);
      void this.#run(task)
        .then(task.result.resolve, task.result.reject)
        .finally(() => {
          this.#count(task.owner, -1);
          this.#startNext();
        });
    }
  }

  #count(owner: string, change: 1 | -1): void {
    this.#running += change;
    const left = (this.#runningOf.get(owner) ?? 0) + change;
    if (left === 0) this.#runningOf.delete(owner);
    else this.#runningOf.set(owner, left);
  }

  async #run({ field, expression, context, names }: Task): Promise<string | null> {
    const { evaluationMs } = this.#limits;
    const of = { expression, context, names };
    const input: EvaluationRequest = { ...of, levels: levelsMax, valueBytesMax };
    let idle = this.#takeIdle();
    // An idle process may have ended unnoticed, which is no attempt.
    for (let attempt = idle === undefined ? 1 : 0; attempt <= attemptsMax; attempt++) {
      const sandbox = idle ?? (await this.#start());
      idle = undefined;
      const outcome = await sandbox.ask({ function: 'evaluate', input }, evaluationMs);
      if (typeof outcome === 'object') {
        this.#idle.push(sandbox);
        if ('error' in outcome) throw invalid(field, outcome.error);
        const evaluated = outcome.value as JsonataAnswer;
        if ('fault' in evaluated) throw invalid(field, evaluated.fault);
        return evaluated.json;
      }
      this.#started.delete(sandbox);
      if (outcome === 'late') throw invalid(field, `takes longer than ${evaluationMs} ms`);
      if (outcome === 'exhausted') throw invalid(field, 'needs too much memory');
      if (outcome === 'held up') break;
    }
    // `503` and not `400`, because the expression itself may be fine.
    throw unavailable('The expression could not be evaluated in time');
  }

  /** An idle process that has not been seen to end. */
  #takeIdle(): Sandbox | undefined {
    for (let sandbox = this.#idle.pop(); sandbox !== undefined; sandbox = this.#idle.pop()) {
      if (!sandbox.hasEnded()) return sandbox;
      this.#started.delete(sandbox);
    }
    return undefined;
  }

  async #start(): Promise<Sandbox> {
    const sandbox = await startSandbox({ module: program, memoryMb }).catch((cause: unknown) => {
      throw tooBusy(cause);
    });
    this.#started.add(sandbox);
    if (!this.#isStopped) return sandbox;
    await sandbox.stop();
    throw tooBusy();
  }
}

function isFull(tasks: readonly Task[], share: number): boolean {
  const chars = tasks.reduce((sum, { context }) => sum + (context?.length ?? 0), 0);
  return tasks.length >= waitingMax * share || chars >= waitingCharsMax * share;
}

/** Applies the rules for request bodies to the result of an expression. */
function cleanValue(json: string, field: string): unknown {
  try {
    return parseJsonBody(Buffer.from(json));
  } catch (error) {
    const [fault] = (error as PlatformError).extras?.details ?? [];
    throw invalid(field, `gives what no request may bring: it ${fault?.issue ?? 'is broken'}`);
  }
}

function tooBusy(cause?: unknown): PlatformError {
  return unavailable('Too many expressions wait to be evaluated', cause);
}

function unavailable(message: string, cause?: unknown): PlatformError {
  return new PlatformError('service_unavailable', message, {
    retryAfter: 1,
    ...(cause === undefined ? {} : { cause }),
  });
}
