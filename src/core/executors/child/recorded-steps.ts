/**
 * A step of a run: on record before its code is executed, and its result on record before its promise
 * resolves. A step that is recorded as completed is not executed again, one that failed rejects with its
 * recorded error. Named steps and called skills are both steps.
 */
import type { RunSettings } from '../../skills/settings.ts';
import { redacted, redactedJson } from '../redaction.ts';
import { ask, askJson, refuseEnded } from './asks.ts';
import { describeFailure } from './failure.ts';
import { noteTime, type Part, type Run } from './part.ts';

/** A step, as it is known in every attempt. */
export interface StepIdentity {
  readonly kind: 'step' | 'skill';
  readonly name: string;
  readonly nth: number;
  /** Of its input; empty if it has none. */
  readonly digest: string;
}

/** Why a step failed, as it is recorded. `retryable` is absent where the error does not say. */
interface RecordedFailure {
  readonly code: string;
  readonly message: string;
  readonly retryable?: boolean;
}

/** The parent's answer to `begin-step`: execute it, or how it ended. */
type Begun = { readonly at?: number } & (
  | { readonly step: number; readonly settings?: RunSettings }
  | { readonly error: RecordedFailure }
  | { readonly output?: unknown }
);

export interface StepCode {
  /** Executes the step; its result is JSON text, undefined for none. `settings` are those of a called skill. */
  execute(step: number, settings: RunSettings | undefined): Promise<string | undefined>;
  /** The error that the caller gets for one that `execute` threw. */
  failed(thrown: unknown, failure: RecordedFailure): unknown;
}

/** Returns the result of the step, recorded or executed now. */
export async function recordedStep(
  part: Part,
  wanted: StepIdentity,
  { execute, failed }: StepCode,
): Promise<unknown> {
  const { run } = part;
  const name = redacted(run, wanted.name);
  const begun = (await ask(part, 'begin-step', { ...wanted, name })) as Begun;
  if (!('step' in begun)) return replayed(part, begun);
  if (run.isOver) return refuseEnded(run);
  const { step, settings } = begun;
  let output: string | undefined;
  try {
    const executed = await execute(step, settings);
    // The caller gets the recorded value, so that a repeated run gets the same.
    output = executed === undefined ? undefined : redactedJson(run, executed);
  } catch (error) {
    const failure = failureOf(error, run);
    // The caller gets the step's own error, even when it can no longer be recorded.
    const recorded = { ...failure, ...delayOf(error) };
    await endStep(part, step, `"error":${JSON.stringify(recorded)}`).catch(() => {});
    throw failed(error, failure);
  }
  await endStep(part, step, output === undefined ? null : `"output":${output}`);
  return output === undefined ? undefined : (JSON.parse(output) as unknown);
}

function replayed({ run }: Part, begun: Exclude<Begun, { step: number }>): unknown {
  noteTime(run, begun.at);
  if ('error' in begun) throw recordedError(begun.error);
  return begun.output;
}

/** `result` is a field of the request; null for a step without one. */
async function endStep(part: Part, step: number, result: string | null): Promise<void> {
  const json = result === null ? `{"step":${step}}` : `{"step":${step},${result}}`;
  const { at } = (await askJson(part, 'end-step', json, step)) as { readonly at?: number };
  noteTime(part.run, at);
}

/** The error that a failed step rejects with, when it is executed and in each replay. */
export function recordedError({ message, ...fields }: RecordedFailure): Error {
  return Object.assign(new Error(message), fields);
}

const codeCharsMax = 100;

function failureOf(thrown: unknown, run: Run): RecordedFailure {
  const failure = describeFailure(thrown, run);
  const { code, retryable } = readFields(thrown);
  return {
    code:
      typeof code === 'string' && code !== ''
        ? redacted(run, code).slice(0, codeCharsMax)
        : failure.code,
    message: failure.message,
    ...(typeof retryable === 'boolean' ? { retryable } : {}),
  };
}

/** Where a service has refused a request for some time; the platform may pause the called skill. */
function delayOf(thrown: unknown): { retryAfterMs?: number } {
  const { retryAfterMs } = describeFailure(thrown);
  return retryAfterMs === null ? {} : { retryAfterMs };
}

/** Whatever was thrown: its fields may be getters that throw. */
function readFields(thrown: unknown): { code?: unknown; retryable?: unknown } {
  try {
    const { code, retryable } = (thrown ?? {}) as { code?: unknown; retryable?: unknown };
    return { code, retryable };
  } catch {
    return {};
  }
}
