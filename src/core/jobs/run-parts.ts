/**
 * What answers the parts of a run: its own code, and the skills that a model calls as tools. Reports go to
 * the job's stream; questions go to the journal, the agent's memory and its model. It has more than 300 lines because
 * all that a run may ask is answered here.
 */

import type { ObservedStep } from '../context/run-observer.ts';
import type { RunHandlers } from '../executors/run.ts';
import type { RunPart } from '../journal/run-part.ts';
import type { WaitScope } from '../journal/wait-scope.ts';
import { isMemoryVerb } from '../memories/memory-verbs.ts';
import type { RunSettings } from '../skills/settings.ts';
import {
  type Attempt,
  isReplaying,
  memoryOf,
  noteFault,
  recordingOf,
  recordsOf,
  remember,
  streamOf,
} from './attempt.ts';
import { calledPlacesOf } from './called-places.ts';
import { holdForPerson } from './held-waits.ts';
import { RecordPlaces } from './record-places.ts';
import { callRemote } from './remote-calls.ts';
import { ReplayOrder } from './replay-order.ts';
import { reportOf } from './reports.ts';
import { settingsOfCalled } from './run-settings.ts';
import { RunSteps, type StepAnswer } from './run-steps.ts';
import { waitsOf } from './run-waits.ts';
import type { RunMessage } from './settle-effects.ts';
import type { RunThinking } from './thinking.ts';

/** A part of an attempt that asks: the run itself, or a tool. */
export interface Asking {
  readonly attempt: Attempt;
  readonly part: RunPart;
  /** Gets the messages of the part. */
  readonly said: RunMessage[];
  /** The scope in which a tool runs; the run itself has that of the attempt. */
  readonly within?: WaitScope;
}

interface Part extends Asking {
  /** Made at the first step. */
  steps: RunSteps | undefined;
  order: ReplayOrder | undefined;
  /** Of steps that are open, by number. */
  scopes: Map<number, WaitScope> | undefined;
}

type Question = Parameters<RunHandlers['onAsk']>;

export function handlersOf(asking: Asking): RunHandlers {
  const part: Part = {
    ...asking,
    steps: undefined,
    order: undefined,
    scopes: undefined,
  };
  return {
    onReport: (report) => takeReport(part, report),
    onAsk: (...question) => answer(part, question),
  };
}

function takeReport(asking: Part, report: Parameters<RunHandlers['onReport']>[0]): void {
  const { attempt, part, said } = asking;
  // The progress of a tool is not the progress of the job.
  if (report.type === 'progress' && part.depth > 0) return;
  if (report.type === 'message') {
    const { role, content, step } = report;
    const message = { role, content, at: attempt.runs.context.clock.now() };
    if (step === undefined) said.push(message);
    else stepsOf(asking).addMessage(step, message);
  }
  if (!isReplaying(attempt)) streamOf(attempt).add(reportOf(report));
}

async function answer(asking: Part, question: Question): Promise<unknown> {
  const { attempt, within } = asking;
  const [kind, , , step] = question;
  const waits = waitsOf(attempt);
  if (within === undefined) waits.noteQuestion();
  const scope = (step === null ? undefined : asking.scopes?.get(step)) ?? within ?? waits.scope;
  try {
    if (kind === 'wait') {
      return await answerWait(asking, question, scope);
    }
    if (kind === 'generate') return await generate(asking, question, scope);
    if (kind === 'call-remote' && step !== null) return await callWithin(asking, question, scope);
    if (kind === 'held-wait') return await answerHeldWait(asking, question, scope);
    const done = scope.work();
    try {
      return await answerWork(asking, question, scope);
    } finally {
      done();
    }
  } catch (error) {
    noteFault(attempt, error);
    throw error;
  }
}

async function answerWait(
  asking: Part,
  [, payload, signal, step]: Question,
  scope: WaitScope,
): Promise<unknown> {
  const turn = orderOf(asking, signal).enter();
  try {
    await recordsOf(asking.attempt);
    const wanted = stepsOf(asking).readWait(payload, step);
    return await waitsOf(asking.attempt).wait(wanted, scope, signal, turn);
  } finally {
    turn.notRecorded();
  }
}

/** Where a service asks a person and holds the call meanwhile. Only runs of remote skills ask it. */
function answerHeldWait(asking: Part, [, payload, signal, step]: Question, scope: WaitScope) {
  const inner = step === null ? asking.part : stepsOf(asking).partOf(step);
  return holdForPerson(asking.attempt, inner, payload, scope, signal);
}

/**
 * A skill of a service outside that the code calls in a step. While it waits for a person, all of the run may be
 * unloaded.
 */
async function callWithin(
  asking: Part,
  [, payload, signal, step]: Question,
  scope: WaitScope,
): Promise<unknown> {
  const inner = stepsOf(asking).partOf(step);
  const waiting = scope.open();
  const handlers: RunHandlers = {
    onReport: (report) => takeReport({ ...asking, part: inner }, report),
    onAsk: (kind, asked, stopped) => {
      const question: Question = [kind, asked, stopped, step];
      if (kind === 'wait') return answerWait(asking, question, waiting);
      if (kind === 'held-wait') return answerHeldWait(asking, question, waiting);
      return answerWork(asking, question, waiting);
    },
  };
  try {
    return await callRemote(asking.attempt, { payload, part: inner, signal, handlers });
  } finally {
    waiting.close();
  }
}

/** A step that an earlier claim has ended; null where none has. */
async function findStep(asking: Part, question: Question, scope: WaitScope): Promise<unknown> {
  const { attempt } = asking;
  if (attempt.job.epoch === 1) return null;
  const [, payload, , within] = question;
  const { byKey } = await recordsOf(attempt);
  const known = byKey.get(stepsOf(asking).keyOfStep(payload, within));
  if (known?.status !== 'completed') return null;
  return beginStep(asking, ['begin-step', payload, question[2], within], scope);
}

/** Answers a question that does not wait. */
async function answerWork(asking: Part, question: Question, scope: WaitScope): Promise<unknown> {
  const { attempt, part } = asking;
  const [kind, payload, signal, step] = question;
  if (kind === 'begin-step') return beginStep(asking, question, scope);
  if (kind === 'end-step') {
    const ended = await endInOrder(asking, payload, signal);
    const { step: n } = payload as { step: number };
    await attempt.places?.give(n);
    asking.scopes?.get(n)?.close();
    asking.scopes?.delete(n);
    return ended;
  }
  if (kind === 'find-step') return findStep(asking, question, scope);
  if (isMemoryVerb(kind)) {
    const noting = step === null ? part : stepsOf(asking).partOf(step);
    return memoryOf(attempt).ask(kind, payload, noting);
  }
  throw new Error(`A run may not ask for ${JSON.stringify(kind)}`);
}

async function beginStep(
  asking: Part,
  [, payload, signal, step]: Question,
  scope: WaitScope,
): Promise<StepAnswer & { readonly settings?: RunSettings }> {
  const { attempt } = asking;
  const turn = orderOf(asking, signal).enter();
  try {
    await recordsOf(attempt);
    const begun = await remember(
      recordingOf(attempt),
      stepsOf(asking).begin(payload, step, turn.recorded),
    );
    if (!('step' in begun)) return begun;
    scopesOf(asking).set(begun.step, openStep(scope, payload));
    noteStep(attempt, begun.step, payload);
    const { kind, name } = payload as { kind: string; name: string };
    if (kind === 'skill') {
      turn.notRecorded();
      await calledPlacesOf(attempt).take(name, stepsOf(asking).partOf(begun.step), signal);
    }
    const settings = await settingsOfStep(attempt, payload);
    return settings === undefined ? begun : { ...begun, settings };
  } finally {
    turn.notRecorded();
  }
}

/** The payload was read when the step began. */
function noteStep({ runs, job }: Attempt, n: number, payload: unknown): void {
  const { kind, name } = payload as Pick<ObservedStep, 'kind' | 'name'>;
  runs.context.observers.stepBegun(job, { n, kind, name });
}

/** The settings of a skill that the run calls, by the step that calls it. */
function settingsOfStep({ runs, job }: Attempt, payload: unknown) {
  const { kind, name } = payload as { kind: string; name: string };
  return kind === 'skill' ? settingsOfCalled(runs, job, name) : undefined;
}

/** Steps that end at once are answered in the order of their places, also if they are committed in another. */
function endInOrder(asking: Part, payload: unknown, signal: AbortSignal): Promise<unknown> {
  const wasStopped = signal.aborted;
  const steps = stepsOf(asking);
  return orderOf(asking, signal).write(
    (place) => remember(recordingOf(asking.attempt), steps.end(payload, place, wasStopped)),
    steps.placeBefore(payload),
  );
}

/** The code of a named step runs outside the platform's view, so its scope never counts as waiting. */
function openStep(scope: WaitScope, payload: unknown): WaitScope {
  const opened = scope.open();
  if ((payload as { kind?: unknown }).kind === 'step') opened.work();
  return opened;
}

async function generate(
  asking: Part,
  [, payload, signal, step]: Question,
  scope: WaitScope,
): Promise<unknown> {
  const part = step === null ? asking.part : stepsOf(asking).partOf(step);
  const inner = scope.open();
  try {
    return await thinkingOf(asking).generate(payload, part, signal, inner);
  } finally {
    inner.close();
  }
}

function scopesOf(asking: Part): Map<number, WaitScope> {
  asking.scopes ??= new Map();
  return asking.scopes;
}

/** The signal is the same for all questions of a part. */
function orderOf(asking: Part, signal: AbortSignal): ReplayOrder {
  const { attempt, within } = asking;
  asking.order ??= new ReplayOrder(
    new RecordPlaces(attempt, within !== undefined),
    signal,
    attempt.runs.pace.patienceMs,
  );
  return asking.order;
}

function stepsOf(asking: Part): RunSteps {
  const { attempt, part, said } = asking;
  asking.steps ??= new RunSteps(attempt, part, said);
  return asking.steps;
}

function thinkingOf({ attempt }: Asking): RunThinking {
  attempt.thinking ??= attempt.runs.thinking.begin(attempt);
  return attempt.thinking;
}
