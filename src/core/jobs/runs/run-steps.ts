/**
 * The steps of one run in an executor: recorded before their code runs, and ended with its
 * result. A step with a recorded result does not run again; its memory changes and its messages to the
 * conversation are applied again. The run's payloads are treated as hostile input.
 */

import { digestOf } from '../../../kernel/digest.ts';
import { digestCharsMax, wholeDigest } from '../../../kernel/input-digest.ts';
import { permanentError } from '../../../kernel/permanent-error.ts';
import { stepNameCharsMax } from '../../../kernel/step-bounds.ts';
import type { BegunStep, StepFailure, StepRequest } from '../../journal/journal-steps.ts';
import { JournalFault, type RecordedEnd, resultBytesMax } from '../../journal/records.ts';
import { type InnerPart, innerPart, type RunPart } from '../../journal/run-part.ts';
import { isCodeWaitKind } from '../../journal/wait-kinds.ts';
import type { WaitRequest } from '../../journal/waits.ts';
import type { RunMessage } from '../settle-effects.ts';
import { type Attempt, journalOf, memoryOf } from './attempt.ts';
import { mayCall } from './called-skills.ts';

/** Code units of a name, a character of which may have two, and of an error message on record. */
const nameMax = 2 * stepNameCharsMax;
const errorMax = 4_096;
const codeMax = 100;

/**
 * The answer to a run that begins a step: run it as this step, or take its recorded output or failure.
 * `at` is when that was recorded.
 */
export type StepAnswer =
  | { readonly step: number }
  | { readonly output: unknown; readonly at: number }
  | { readonly error: StepFailure; readonly at: number };

interface OpenStep extends Pick<StepRequest, 'key' | 'kind'>, Pick<BegunStep, 'after'> {
  readonly part: InnerPart;
  readonly messages: RunMessage[];
  /** The enclosing step. */
  readonly enclosing: OpenStep | undefined;
}

/** The result in the row of a completed step. */
interface RecordedOutput {
  readonly output: unknown;
  readonly said: readonly RunMessage[];
}

export class RunSteps {
  readonly #attempt: Attempt;
  readonly #part: RunPart;
  readonly #messages: RunMessage[];
  readonly #open = new Map<number | null, OpenStep>();

  /** `part`: the run itself, or a tool call; `messages` gets those of the part. */
  constructor(attempt: Attempt, part: RunPart, messages: RunMessage[]) {
    this.#attempt = attempt;
    this.#part = part;
    this.#messages = messages;
  }

  /** The part of the run that a step is; the run itself for null, and for a step that is not open. */
  partOf(step: number | null): RunPart {
    return this.#open.get(step)?.part ?? this.#part;
  }

  /**
   * Takes a message of the step, which is added to the conversation when the run completes. The enclosing
   * steps get it too, because each may be replayed alone.
   */
  addMessage(step: number | null, message: RunMessage): void {
    this.#messages.push(message);
    let within = this.#open.get(step);
    for (; within !== undefined; within = within.enclosing) within.messages.push(message);
  }

  /**
   * Rejects when the caller's key does not allow to run the skill now, and beyond the bound of steps.
   * `inTurn` resolves when the run may get an end that is on record.
   */
  async begin(
    payload: unknown,
    within: number | null,
    inTurn: (end: RecordedEnd) => Promise<void>,
  ): Promise<StepAnswer> {
    const { kind, name, digest, nth } = readStep(payload);
    const enclosing = this.#open.get(within);
    const part = this.partOf(within);
    // `nth` is the number of the step among equal ones of the path.
    const key =
      kind === 'skill'
        ? digestOf(JSON.stringify([part.path, kind, name, nth, wholeDigest(digest)]))
        : keyOf(part, name, nth);
    const request = { key, kind, name, nth, parent: part.step, digest };
    const { n, recorded, after } = await journalOf(this.#attempt).beginStep(request, async () => {
      if (kind === 'skill' && !(await mayCall(this.#attempt, name))) {
        throw permanentError(`this run may not call ${name}`);
      }
    });
    if (recorded === undefined) {
      const inner = innerPart(part, n, key, part.depth);
      this.#open.set(n, { key, kind, after, part: inner, messages: [], enclosing });
      return { step: n };
    }
    const { at } = recorded;
    if ('error' in recorded) {
      await inTurn(recorded);
      return { error: recorded.error, at };
    }
    if (recorded.memory.length > 0) {
      await memoryOf(this.#attempt).restore(recorded.memory);
      part.changes?.add(...recorded.memory);
    }
    const { output, said } = JSON.parse(recorded.result) as RecordedOutput;
    for (const message of said) this.addMessage(within, message);
    await inTurn(recorded);
    return { output, at };
  }

  /** The run gets ends on record with places before this one before the end of the step. */
  placeBefore(payload: unknown): number {
    return this.#open.get(fieldsOf(payload)['step'] as number)?.after ?? 0;
  }

  /**
   * Ends a step; resolves to when it ended. `place` is that of the end in the order in which the run gets ends;
   * `wasStopped` if the run is being stopped.
   */
  async end(payload: unknown, place: number, wasStopped: boolean): Promise<{ at: number }> {
    const { step, ...given } = readEnd(payload);
    const ended = this.#open.get(step);
    if (ended === undefined) throw permanentError('there is no such step');
    this.#open.delete(step);
    const { key, kind } = ended;
    const ending = { key, kind, n: step, place };
    if ('error' in given) {
      return { at: await journalOf(this.#attempt).endStep(ending, { ...given, wasStopped }) };
    }
    const isNamed = kind === 'step';
    const output = isNamed ? given.output : (given.output ?? null);
    const record: RecordedOutput = { output, said: ended.messages };
    const result = JSON.stringify(record);
    if (isNamed && Buffer.byteLength(JSON.stringify(output) ?? '') > resultBytesMax) {
      const message = `the result of a step may have ${resultBytesMax / 1024} KiB of JSON`;
      throw new JournalFault('skill_execution_failed', message);
    }
    const memory = ended.part.changes.list;
    return { at: await journalOf(this.#attempt).endStep(ending, { result, memory }) };
  }

  /** Reads a wait of the run. A step whose code runs may not wait: it would run again afterwards. */
  readWait(payload: unknown, within: number | null): WaitRequest {
    // Code starts jobs of its own agent alone.
    const { agent: _, ...fields } = fieldsOf(payload);
    const { kind, name, nth } = fields;
    if (!isCodeWaitKind(kind) || !isPlace(name, nth)) {
      throw permanentError('this is no wait that a run may ask for');
    }
    for (let step = this.#open.get(within); step !== undefined; step = step.enclosing) {
      if (step.kind !== 'step') continue;
      throw permanentError(`a step may not wait: move "${name}" out of the function of the step`);
    }
    const part = this.partOf(within);
    const key = keyOf(part, name as string, nth as number);
    const place = { key, name: name as string, nth: nth as number, parent: part.step };
    return { ...place, kind, payload: fields };
  }

  /** The key of a named step before it begins. */
  keyOfStep(payload: unknown, within: number | null): string {
    const { name, nth } = fieldsOf(payload);
    if (!isPlace(name, nth)) throw permanentError('this is no step that can be taken');
    return keyOf(this.partOf(within), name as string, nth as number);
  }
}

/** The key of a named step or a wait: without its kind and input, so that a change of these is noticed. */
function keyOf({ path }: RunPart, name: string, nth: number): string {
  return digestOf(JSON.stringify([path, name, nth]));
}

function isPlace(name: unknown, nth: unknown): boolean {
  return typeof name === 'string' && name.length <= nameMax && Number.isSafeInteger(nth);
}

function readStep(payload: unknown): {
  kind: StepRequest['kind'];
  name: string;
  digest: string;
  nth: number;
} {
  const { kind, name, digest, nth } = fieldsOf(payload);
  const isStep =
    (kind === 'skill' || kind === 'step') &&
    isPlace(name, nth) &&
    typeof digest === 'string' &&
    digest.length <= digestCharsMax;
  if (!isStep) throw permanentError('this is no step that can be taken');
  return { kind, name: name as string, digest, nth: nth as number };
}

function readEnd(
  payload: unknown,
): { step: number } & ({ output: unknown } | { error: StepFailure }) {
  const { step, output, error } = fieldsOf(payload);
  if (typeof step !== 'number') throw permanentError('there is no such step');
  if (error === undefined) return { step, output };
  const { code, message, retryable } = fieldsOf(error);
  return {
    step,
    error: {
      code: `${code}`.slice(0, codeMax),
      message: `${message}`.slice(0, errorMax),
      ...(typeof retryable === 'boolean' ? { retryable } : {}),
    },
  };
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
}
