/**
 * The steps that one run in an executor asks for: recorded before their code runs, and ended with its
 * result. A step with a recorded result does not run again; its memory changes and its messages to the
 * conversation are applied again. The run's payloads are treated as hostile input.
 */
import { createHash } from 'node:crypto';
import { permanentError } from '../kernel/permanent-error.ts';
import type { MemoryChange, RunMemory } from '../memories/run-memory.ts';
import type { SaidMessage } from './journal.ts';
import type { StepJournal } from './journal-steps.ts';
import type { RunPart } from './run-part.ts';

/** Steps of one run. */
const stepsMax = 10_000;
/** Characters of a name and of an error message on record. */
const nameMax = 300;
const errorMax = 4_096;
const codeMax = 100;

/** The answer to a run that begins a step: run it as this step, or use the recorded output. */
export type StepAnswer = { readonly step: number } | { readonly output: unknown };

interface OpenStep {
  /** The part of the run that the step is. */
  readonly part: RunPart;
  readonly changes: MemoryChange[];
  readonly said: SaidMessage[];
  /** The enclosing step. */
  readonly enclosing: OpenStep | undefined;
}

/** The result in the row of a completed step. */
interface RecordedOutput {
  readonly output: unknown;
  readonly said: readonly SaidMessage[];
}

export interface RunSteps {
  /** The part of the run that a step is; the run itself for null, and for a step that is not open. */
  partOf(step: number | null): RunPart;
  /** Takes a message of the step, which is added to the conversation when the run completes. */
  say(step: number | null, message: SaidMessage): void;
  /** Rejects when the caller's key does not allow the skill, and beyond the bound of steps. */
  begin(payload: unknown, within: number | null): Promise<StepAnswer>;
  end(payload: unknown): Promise<true>;
}

export function createRunSteps(parts: {
  /** The part that asks: the run itself, or a tool call. */
  part: RunPart;
  journal: StepJournal;
  memory(): Pick<RunMemory, 'restore'>;
  mayCall(skill: string): Promise<boolean>;
  /** The messages of the run. */
  said: SaidMessage[];
}): RunSteps {
  const { part: base, journal, memory, mayCall, said } = parts;
  const open = new Map<number, OpenStep>();
  let count = 0;

  function partOf(step: number | null): RunPart {
    return (step === null ? undefined : open.get(step)?.part) ?? base;
  }

  /** The enclosing steps get the message too, because each may be replayed alone. */
  function say(step: number | null, message: SaidMessage): void {
    said.push(message);
    let within = step === null ? undefined : open.get(step);
    for (; within !== undefined; within = within.enclosing) within.said.push(message);
  }

  return {
    partOf,
    say,

    async begin(payload, within) {
      const { name, digest, nth } = readWanted(payload);
      if (!(await mayCall(name))) throw permanentError(`this run may not call ${name}`);
      count += 1;
      if (count > stepsMax) throw permanentError(`a run may call skills ${stepsMax} times`);
      const enclosing = within === null ? undefined : open.get(within);
      const part = enclosing?.part ?? base;
      const key = keyOf(part.path, 'skill', name, nth, digest);
      const { n, recorded } = await journal.beginStep({
        key,
        kind: 'skill',
        name,
        parent: part.step,
      });
      if (recorded === undefined) {
        open.set(n, openStep(n, key, part, enclosing));
        return { step: n };
      }
      if (recorded.memory.length > 0) {
        await memory().restore(recorded.memory);
        recorded.memory.forEach(part.note);
      }
      const { output, said: messages } = JSON.parse(recorded.result) as RecordedOutput;
      for (const message of messages) say(within, message);
      return { output };
    },

    async end(payload) {
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
    },
  };
}

function openStep(
  n: number,
  key: string,
  part: RunPart,
  enclosing: OpenStep | undefined,
): OpenStep {
  const changes: MemoryChange[] = [];
  return {
    part: {
      path: `${part.path}/${key}`,
      // A step is part of the run's own code, so it keeps the depth.
      depth: part.depth,
      step: n,
      note(change) {
        changes.push(change);
        part.note(change);
      },
    },
    changes,
    said: [],
    enclosing,
  };
}

/** The step's key, the same in every attempt. `nth` is its number among equal steps of the path. */
function keyOf(path: string, kind: string, name: string, nth: number, digest: string): string {
  return createHash('sha256')
    .update(JSON.stringify([path, kind, name, nth, digest]))
    .digest('base64url')
    .slice(0, 22);
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
): { step: number } & ({ output: unknown } | { error: { code: string; message: string } }) {
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
