/**
 * The steps of one run in an executor, as it asks for them: begun before their code runs, ended with
 * what it gave. A step that is on record is answered from there, and what it did to the agent's memory
 * and said to the conversation is done again. What a run says of its steps is judged as hostile input.
 */
import { createHash } from 'node:crypto';
import { refusal } from '../kernel/refusal.ts';
import type { MemoryChange, RunMemory } from '../memories/run-memory.ts';
import type { SaidMessage } from './journal.ts';
import type { StepJournal } from './journal-steps.ts';
import type { Scope } from './scope.ts';

/** Steps of one run. */
const stepsMax = 10_000;
/** Characters of a name and of an error message on record. */
const nameMax = 300;
const errorMax = 4_096;
const codeMax = 100;

/** What a run is told of a step that it wants to take: take it, or what it gave. */
export type StepAnswer = { readonly step: number } | { readonly output: unknown };

interface OpenStep {
  /** Of what is asked within the step. */
  readonly scope: Scope;
  readonly changes: MemoryChange[];
  readonly said: SaidMessage[];
  /** The step in which this one is taken. */
  readonly around: OpenStep | undefined;
}

/** What the row of a completed step holds. */
interface RecordedOutput {
  readonly output: unknown;
  readonly said: readonly SaidMessage[];
}

export interface RunSteps {
  /** The part of the run that a step is; the run itself for null and for a step that is not open. */
  scopeOf(step: number | null): Scope;
  /** Adds to the conversation, when the run completes, what was said within the step. */
  say(step: number | null, message: SaidMessage): void;
  /** Rejects where the caller's key does not allow it, and beyond the bound. */
  begin(payload: unknown, within: number | null): Promise<StepAnswer>;
  end(payload: unknown): Promise<true>;
}

export function createRunSteps(parts: {
  /** The run itself, or the tool that it is. */
  scope: Scope;
  journal: StepJournal;
  memory(): Pick<RunMemory, 'restore'>;
  mayCall(skill: string): Promise<boolean>;
  /** The messages of the run. */
  said: SaidMessage[];
}): RunSteps {
  const { scope: base, journal, memory, mayCall, said } = parts;
  const open = new Map<number, OpenStep>();
  let count = 0;

  function scopeOf(step: number | null): Scope {
    return (step === null ? undefined : open.get(step)?.scope) ?? base;
  }

  /** What was said within a step is also said within those around it: each may be on record alone. */
  function say(step: number | null, message: SaidMessage): void {
    said.push(message);
    let within = step === null ? undefined : open.get(step);
    for (; within !== undefined; within = within.around) within.said.push(message);
  }

  return {
    scopeOf,
    say,

    async begin(payload, within) {
      const { name, digest, nth } = readWanted(payload);
      if (!(await mayCall(name))) throw refusal(`this run may not call ${name}`);
      count += 1;
      if (count > stepsMax) throw refusal(`a run may call skills ${stepsMax} times`);
      const around = within === null ? undefined : open.get(within);
      const scope = around?.scope ?? base;
      const key = keyOf(scope.path, 'skill', name, nth, digest);
      const { n, recorded } = await journal.beginStep({
        key,
        kind: 'skill',
        name,
        parent: scope.step,
      });
      if (recorded === undefined) {
        open.set(n, openStep(n, key, scope, around));
        return { step: n };
      }
      if (recorded.memory.length > 0) {
        await memory().restore(recorded.memory);
        recorded.memory.forEach(scope.note);
      }
      const { output, said: messages } = JSON.parse(recorded.result) as RecordedOutput;
      for (const message of messages) say(within, message);
      return { output };
    },

    async end(payload) {
      const { step, ...ending } = readEnd(payload);
      const ended = open.get(step);
      if (ended === undefined) throw refusal('there is no such step');
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

function openStep(n: number, key: string, scope: Scope, around: OpenStep | undefined): OpenStep {
  const changes: MemoryChange[] = [];
  return {
    scope: {
      path: `${scope.path}/${key}`,
      // It belongs to the run's own code, so it may do what that may.
      depth: scope.depth,
      step: n,
      note(change) {
        changes.push(change);
        scope.note(change);
      },
    },
    changes,
    said: [],
    around,
  };
}

/** The same in every attempt: where it is asked, of which kind, of what, and the how manieth of these. */
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
  if (!isWanted) throw refusal('this is no step that can be taken');
  return { name, digest, nth: nth as number };
}

function readEnd(
  payload: unknown,
): { step: number } & ({ output: unknown } | { error: { code: string; message: string } }) {
  const { step, output, error } = fieldsOf(payload);
  if (typeof step !== 'number') throw refusal('there is no such step');
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
