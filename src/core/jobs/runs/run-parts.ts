/**
 * Answers the parts of a run: its own code, and the skills that a model calls as tools. Reports go to
 * the job's stream; requests go to the journal, the agent's memory and its model. It has more than 300 lines because
 * all requests of a run are answered here.
 */

import type { ObservedStep } from '../../context/run-observer.ts';
import type { RunHandlers } from '../../executors/run.ts';
import type { RunPart } from '../../journal/run-part.ts';
import type { WaitScope } from '../../journal/wait-scope.ts';
import { isMemoryVerb } from '../../memories/memory-verbs.ts';
import type { RunSettings } from '../../skills/settings.ts';
import { calledPlacesOf } from '../gates/called-places.ts';
import type { RunMessage } from '../settle-effects.ts';
import {
  type Attempt,
  endOnFault,
  filesOf,
  isReplaying,
  memoryOf,
  recordingOf,
  recordsOf,
  remember,
  streamOf,
} from './attempt.ts';
import { holdForPerson } from './held-waits.ts';
import { callRemote } from './remote-calls.ts';
import { ReplayOrder } from './replay-order.ts';
import { ReplayPositions } from './replay-positions.ts';
import { reportOf } from './reports.ts';
import { isFileRequest } from './run-files.ts';
import { settingsOfCalled } from './run-settings.ts';
import { RunSteps, type StepAnswer } from './run-steps.ts';
import { waitsOf } from './run-waits.ts';
import type { RunThinking } from './thinking.ts';

/** A part of an attempt, which makes requests: the run itself, or a tool. */
export interface AttemptPart {
  readonly attempt: Attempt;
  readonly part: RunPart;
  /** Gets the messages of the part. */
  readonly messages: RunMessage[];
  /** The scope in which a tool runs; the run itself has that of the attempt. */
  readonly within?: WaitScope;
}

interface OpenPart extends AttemptPart {
  /** Made at the first step. */
  steps: RunSteps | undefined;
  order: ReplayOrder | undefined;
  /** Of steps that are open, by number. */
  scopes: Map<number, WaitScope> | undefined;
}

type PartRequest = Parameters<RunHandlers['onAsk']>;

export function handlersOf(from: AttemptPart): RunHandlers {
  const part: OpenPart = {
    ...from,
    steps: undefined,
    order: undefined,
    scopes: undefined,
  };
  return {
    onReport: (report) => takeReport(part, report),
    onAsk: (...request) => answer(part, request),
  };
}

function takeReport(from: OpenPart, report: Parameters<RunHandlers['onReport']>[0]): void {
  const { attempt, part, messages } = from;
  // The progress of a tool is not the progress of the job.
  if (report.type === 'progress' && part.depth > 0) return;
  if (report.type === 'message') {
    const { role, content, step } = report;
    const message = { role, content, at: attempt.runs.context.clock.now() };
    if (step === undefined) messages.push(message);
    else stepsOf(from).addMessage(step, message);
  }
  if (!isReplaying(attempt)) streamOf(attempt).add(reportOf(report));
}

async function answer(from: OpenPart, request: PartRequest): Promise<unknown> {
  const { attempt, within } = from;
  const [kind, , , step] = request;
  const waits = waitsOf(attempt);
  if (within === undefined) waits.requestMade();
  const scope = (step === null ? undefined : from.scopes?.get(step)) ?? within ?? waits.scope;
  try {
    if (kind === 'wait') {
      return await answerWait(from, request, scope);
    }
    if (kind === 'generate') return await generate(from, request, scope);
    if (kind === 'call-remote' && step !== null) return await callWithin(from, request, scope);
    if (kind === 'held-wait') return await answerHeldWait(from, request, scope);
    const done = scope.work();
    try {
      return await answerWork(from, request, scope);
    } finally {
      done();
    }
  } catch (error) {
    endOnFault(attempt, error);
    throw error;
  }
}

async function answerWait(
  from: OpenPart,
  [, payload, signal, step]: PartRequest,
  scope: WaitScope,
): Promise<unknown> {
  const turn = orderOf(from, signal).enter();
  try {
    await recordsOf(from.attempt);
    const request = stepsOf(from).readWait(payload, step);
    return await waitsOf(from.attempt).wait(request, scope, signal, turn);
  } finally {
    turn.notRecorded();
  }
}

/** A service asks a person and holds the call meanwhile. Only runs of remote skills request this. */
function answerHeldWait(from: OpenPart, [, payload, signal, step]: PartRequest, scope: WaitScope) {
  const inner = step === null ? from.part : stepsOf(from).partOf(step);
  return holdForPerson(from.attempt, inner, payload, scope, signal);
}

/**
 * A skill of a service outside that the code calls in a step. While it waits for a person, all of the run may be
 * unloaded.
 */
async function callWithin(
  from: OpenPart,
  [, payload, signal, step]: PartRequest,
  scope: WaitScope,
): Promise<unknown> {
  const inner = stepsOf(from).partOf(step);
  const waiting = scope.open();
  const handlers: RunHandlers = {
    onReport: (report) => takeReport({ ...from, part: inner }, report),
    onAsk: (kind, body, stopped) => {
      const request: PartRequest = [kind, body, stopped, step];
      if (kind === 'wait') return answerWait(from, request, waiting);
      if (kind === 'held-wait') return answerHeldWait(from, request, waiting);
      return answerWork(from, request, waiting);
    },
  };
  try {
    return await callRemote(from.attempt, { payload, part: inner, signal, handlers });
  } finally {
    waiting.close();
  }
}

/** A step that an earlier claim has ended; null where none has. */
async function findStep(from: OpenPart, request: PartRequest, scope: WaitScope): Promise<unknown> {
  const { attempt } = from;
  if (attempt.job.epoch === 1) return null;
  const [, payload, , within] = request;
  const { byKey } = await recordsOf(attempt);
  const known = byKey.get(stepsOf(from).keyOfStep(payload, within));
  if (known?.status !== 'completed') return null;
  return beginStep(from, ['begin-step', payload, request[2], within], scope);
}

/** Answers a request that does not wait. */
async function answerWork(
  from: OpenPart,
  request: PartRequest,
  scope: WaitScope,
): Promise<unknown> {
  const { attempt, part } = from;
  const [kind, payload, signal, step] = request;
  if (kind === 'begin-step') return beginStep(from, request, scope);
  if (kind === 'end-step') {
    const ended = await endInOrder(from, payload, signal);
    const { step: n, error } = payload as { step: number; error?: unknown };
    if (error !== undefined) await attempt.places?.failed(n, error);
    await attempt.places?.give(n);
    from.scopes?.get(n)?.close();
    from.scopes?.delete(n);
    return ended;
  }
  if (kind === 'find-step') return findStep(from, request, scope);
  if (isMemoryVerb(kind)) {
    const inner = step === null ? part : stepsOf(from).partOf(step);
    return memoryOf(attempt).ask(kind, payload, inner);
  }
  if (isFileRequest(kind)) return filesOf(attempt).ask(kind, payload, signal);
  throw new Error(`A run may not ask for ${JSON.stringify(kind)}`);
}

async function beginStep(
  from: OpenPart,
  [, payload, signal, step]: PartRequest,
  scope: WaitScope,
): Promise<StepAnswer & { readonly settings?: RunSettings }> {
  const { attempt } = from;
  const turn = orderOf(from, signal).enter();
  try {
    const { last } = await recordsOf(attempt);
    const begun = await remember(
      recordingOf(attempt),
      stepsOf(from).begin(payload, step, turn.recorded),
    );
    if (!('step' in begun)) return begun;
    scopesOf(from).set(begun.step, openStep(scope, payload));
    observeStep(attempt, begun.step, payload);
    const { kind, name } = payload as { kind: string; name: string };
    if (kind === 'skill') {
      turn.notRecorded();
      const goesOn = attempt.job.resumed_at !== null && begun.step <= last;
      await calledPlacesOf(attempt).take(name, stepsOf(from).partOf(begun.step), signal, goesOn);
    }
    const settings = await settingsOfStep(attempt, payload);
    return settings === undefined ? begun : { ...begun, settings };
  } finally {
    turn.notRecorded();
  }
}

/** The payload was read when the step began. */
function observeStep({ runs, job }: Attempt, n: number, payload: unknown): void {
  const { kind, name } = payload as Pick<ObservedStep, 'kind' | 'name'>;
  runs.context.observers.stepBegun(job, { n, kind, name });
}

/** The settings of a skill that the run calls, by the step that calls it. */
function settingsOfStep({ runs, job }: Attempt, payload: unknown) {
  const { kind, name } = payload as { kind: string; name: string };
  return kind === 'skill' ? settingsOfCalled(runs, job, name) : undefined;
}

/** Steps that end at once are answered in the order of their places, also if they are committed in another. */
function endInOrder(from: OpenPart, payload: unknown, signal: AbortSignal): Promise<unknown> {
  const wasStopped = signal.aborted;
  const steps = stepsOf(from);
  return orderOf(from, signal).write(
    (place) => remember(recordingOf(from.attempt), steps.end(payload, place, wasStopped)),
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
  from: OpenPart,
  [, payload, signal, step]: PartRequest,
  scope: WaitScope,
): Promise<unknown> {
  const part = step === null ? from.part : stepsOf(from).partOf(step);
  const inner = scope.open();
  try {
    return await thinkingOf(from).generate(payload, part, signal, inner);
  } finally {
    inner.close();
  }
}

function scopesOf(from: OpenPart): Map<number, WaitScope> {
  from.scopes ??= new Map();
  return from.scopes;
}

/** The signal is the same for all questions of a part. */
function orderOf(from: OpenPart, signal: AbortSignal): ReplayOrder {
  const { attempt, within } = from;
  from.order ??= new ReplayOrder(
    new ReplayPositions(attempt, within !== undefined),
    signal,
    attempt.runs.pace.patienceMs,
  );
  return from.order;
}

function stepsOf(from: OpenPart): RunSteps {
  const { attempt, part, messages } = from;
  from.steps ??= new RunSteps(attempt, part, messages);
  return from.steps;
}

function thinkingOf({ attempt }: AttemptPart): RunThinking {
  attempt.thinking ??= attempt.runs.thinking.begin(attempt);
  return attempt.thinking;
}
