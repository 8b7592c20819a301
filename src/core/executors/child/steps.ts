/**
 * `ctx.step`: a function of the run's code whose result is recorded. It is executed at least once until its
 * result is on record, and never again afterwards. Its retries are within the run's attempt.
 */
import { type Backoff, delayAfter } from '../../../kernel/backoff.ts';
import type { Recorded, StepOptions, StepRun } from '../../skills/definition.ts';
import { refuseEnded } from './asks.ts';
import { describeFailure } from './failure.ts';
import { type Part, takeNumbers } from './part.ts';
import { recordedError, recordedStep } from './recorded-steps.ts';
import { signalOf } from './run-signal.ts';
import {
  checkFunction,
  executionFields,
  readExecution,
  readFields,
  readName,
  type StepExecution,
} from './step-arguments.ts';
import { idempotencyKeyOf } from './step-keys.ts';
import { refuseWithinStep, type StepScope, withinStep } from './step-scope.ts';
import { writeValue } from './step-values.ts';

const backoff: Backoff = { baseMs: 200, maxMs: 30_000 };

/** The function of a step. */
type StepFunction = (step: StepRun) => unknown;

export async function takeStep<T>(
  part: Part,
  name: string,
  run: (step: StepRun) => T | Promise<T>,
  options: StepOptions = {},
): Promise<Recorded<T>> {
  refuseWithinStep('ctx.step');
  readName(name, 'the name of a step');
  const what = `the step ${JSON.stringify(name)}`;
  checkFunction(run, `the second argument of ${what}`);
  const fields = readFields(options, executionFields, `the options of ${what}`);
  const execution = readExecution(fields, what);
  const wanted = { name, nth: takeNumbers(part, name), digest: '' };
  return (await executeOnce(part, wanted, run, execution)) as Recorded<T>;
}

/** Executes the function of a step unless it is recorded; returns its result as JSON carries it. */
export function executeOnce(
  part: Part,
  wanted: { readonly name: string; readonly nth: number; readonly digest: string },
  run: StepFunction,
  execution: StepExecution,
): Promise<unknown> {
  const { name, nth } = wanted;
  const what = `the step ${JSON.stringify(name)} returned`;
  return recordedStep(
    part,
    { kind: 'step', ...wanted },
    {
      async execute(step) {
        const idempotencyKey = idempotencyKeyOf(part, name, nth);
        const scope = { part, step, name, idempotencyKey, names: new Map<string, number>() };
        return writeValue(await executeWithRetries(scope, run, execution), what);
      },
      // As in a replay, so that a `catch` takes the same branch; the stack is for the operator's log.
      failed(thrown, failure) {
        const error = recordedError(failure);
        if (thrown instanceof Error && thrown.stack !== undefined) error.stack = thrown.stack;
        return error;
      },
    },
  );
}

async function executeWithRetries(
  scope: Omit<StepScope, 'uuids' | 'isOver'>,
  run: StepFunction,
  { retries, timeoutMs }: StepExecution,
): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    try {
      // All executions share the numbers of their calls: what an earlier one called is on record.
      return await executeStep({ ...scope, uuids: 0, isOver: false }, run, attempt, timeoutMs);
    } catch (error) {
      if (attempt > retries || !describeFailure(error).retryable) throw error;
      await pause(scope.part, delayAfter(backoff, attempt));
    }
  }
}

/** Rejects at once if the run is asked to stop. */
async function pause({ run, platform }: Part, ms: number): Promise<void> {
  if (run.isOver) return refuseEnded(run);
  const signal = signalOf(run);
  await platform.clock.pause(ms, signal).catch((error: unknown) => {
    throw signal.aborted ? signal.reason : error;
  });
}

async function executeStep(
  scope: StepScope,
  run: StepFunction,
  attempt: number,
  timeoutMs: number | undefined,
): Promise<unknown> {
  const timeout = new StepTimeout(scope.part);
  const step: StepRun = {
    idempotencyKey: scope.idempotencyKey,
    attempt,
    get signal() {
      return timeout.signal;
    },
  };
  const result = withinStep(scope, async () => run(step));
  try {
    return await (timeoutMs === undefined ? result : timeout.limit(result, timeoutMs, scope.name));
  } finally {
    scope.isOver = true;
  }
}

/** The signal of one execution of a step, made when it is first read, and its time limit. */
class StepTimeout {
  readonly #part: Part;
  #controller: AbortController | undefined;
  #signal: AbortSignal | undefined;
  #reason: Error | undefined;

  constructor(part: Part) {
    this.#part = part;
  }

  get signal(): AbortSignal {
    if (this.#signal === undefined) {
      this.#controller = new AbortController();
      if (this.#reason !== undefined) this.#controller.abort(this.#reason);
      this.#signal = AbortSignal.any([signalOf(this.#part.run), this.#controller.signal]);
    }
    return this.#signal;
  }

  /** Rejects at the end of the time, whether or not the function obeys the signal. */
  async limit(result: Promise<unknown>, ms: number, name: string): Promise<unknown> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      const message = `the step ${JSON.stringify(name)} did not end within ${ms} ms`;
      this.#reason = Object.assign(new Error(message), { code: 'skill_timeout', retryable: true });
      late.reject(this.#reason);
      this.#controller?.abort(this.#reason);
    }, ms);
    try {
      return await Promise.race([result, late.promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}
