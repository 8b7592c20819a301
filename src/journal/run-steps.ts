/**
 * The steps that one run in an executor asks for: recorded before their code runs, and ended with its
 * result. A step with a recorded result does not run again; its memory changes and its messages to the
 * conversation are applied again. The run's payloads are treated as hostile input.
 */

import type { NewMessage } from '../conversations/record.ts';
import { bind } from '../kernel/bind.ts';
import { digestOf } from '../kernel/digest.ts';
import { permanentError } from '../kernel/permanent-error.ts';
import type { RunMemory } from '../memories/run-memory.ts';
import type { BegunStep, StepEnd, WantedStep } from './journal-steps.ts';
import { type InnerPart, innerPart, type RunPart } from './run-part.ts';
import type { StepError } from './step-rows.ts';

/** Steps of one run. */
const stepsMax = 10_000;
/** Characters of a name and of an error message on record. */
const nameMax = 300;
const errorMax = 4_096;
const codeMax = 100;

/** A message that a part of a run added to the conversation. */
export type SaidMessage = Pick<NewMessage, 'role' | 'content' | 'at'>;

/** The answer to a run that begins a step: run it as this step, or use the recorded output. */
export type StepAnswer = { readonly step: number } | { readonly output: unknown };

interface OpenStep extends InnerPart {
  readonly said: SaidMessage[];
  /** The enclosing step. */
  readonly enclosing: OpenStep | undefined;
}

/** The result in the row of a completed step. */
interface RecordedOutput {
  readonly output: unknown;
  readonly said: readonly SaidMessage[];
}

interface RunStepsDeps {
  /** The part that asks: the run itself, or a tool call. */
  readonly part: RunPart;
  readonly journal: {
    beginStep(wanted: WantedStep): Promise<BegunStep>;
    endStep(n: number, end: StepEnd): Promise<void>;
  };
  memory(): Pick<RunMemory, 'restore'>;
  mayCall(skill: string): Promise<boolean>;
  /** The messages of the run. */
  readonly said: SaidMessage[];
}

interface StepsState extends RunStepsDeps {
  readonly open: Map<number | null, OpenStep>;
  count: number;
}

export type RunSteps = ReturnType<typeof createRunSteps>;

export function createRunSteps(deps: RunStepsDeps) {
  const state: StepsState = { ...deps, open: new Map(), count: 0 };
  return bind(state, { partOf, say, begin, end });
}

/** The part of the run that a step is; the run itself for null, and for a step that is not open. */
function partOf({ open, part }: StepsState, step: number | null): RunPart {
  return open.get(step)?.part ?? part;
}

/**
 * Takes a message of the step, which is added to the conversation when the run completes. The enclosing
 * steps get it too, because each may be replayed alone.
 */
function say({ said, open }: StepsState, step: number | null, message: SaidMessage): void {
  said.push(message);
  let within = open.get(step);
  for (; within !== undefined; within = within.enclosing) within.said.push(message);
}

/** Rejects when the caller's key does not allow the skill, and beyond the bound of steps. */
async function begin(
  state: StepsState,
  payload: unknown,
  within: number | null,
): Promise<StepAnswer> {
  const { journal, memory, mayCall, open } = state;
  const { name, digest, nth } = readWanted(payload);
  if (!(await mayCall(name))) throw permanentError(`this run may not call ${name}`);
  state.count += 1;
  if (state.count > stepsMax) throw permanentError(`a run may call skills ${stepsMax} times`);
  const enclosing = open.get(within);
  const part = partOf(state, within);
  // `nth` is the number of the step among equal ones of the path.
  const key = digestOf(JSON.stringify([part.path, 'skill', name, nth, digest]));
  const { n, recorded } = await journal.beginStep({ key, kind: 'skill', name, parent: part.step });
  if (recorded === undefined) {
    open.set(n, { ...innerPart(part, n, key, part.depth), said: [], enclosing });
    return { step: n };
  }
  if (recorded.memory.length > 0) {
    await memory().restore(recorded.memory);
    recorded.memory.forEach(part.note);
  }
  const { output, said } = JSON.parse(recorded.result) as RecordedOutput;
  for (const message of said) say(state, within, message);
  return { output };
}

async function end({ open, journal }: StepsState, payload: unknown): Promise<true> {
  const { step, ...ending } = readEnd(payload);
  const ended = open.get(step);
  if (ended === undefined) throw permanentError('there is no such step');
  open.delete(step);
  if ('error' in ending) await journal.endStep(step, ending);
  else {
    const record: RecordedOutput = { output: ending.output, said: ended.said };
    await journal.endStep(step, { result: JSON.stringify(record), memory: ended.changes });
  }
  return true;
}

function readWanted(payload: unknown): { name: string; digest: string; nth: number } {
  const { kind, name, digest, nth } = fieldsOf(payload);
  const isWanted =
    kind === 'skill' &&
    typeof name === 'string' &&
    name.length <= nameMax &&
    typeof digest === 'string' &&
    digest.length <= nameMax &&
    Number.isSafeInteger(nth);
  if (!isWanted) throw permanentError('this is no step that can be taken');
  return { name, digest, nth: nth as number };
}

function readEnd(
  payload: unknown,
): { step: number } & ({ output: unknown } | { error: StepError }) {
  const { step, output, error } = fieldsOf(payload);
  if (typeof step !== 'number') throw permanentError('there is no such step');
  if (error === undefined) return { step, output: output ?? null };
  const { code, message } = fieldsOf(error);
  return {
    step,
    error: { code: `${code}`.slice(0, codeMax), message: `${message}`.slice(0, errorMax) },
  };
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : {};
}
