/**
 * One execution of a run's code in this process: the executor's own code (src/executors/child-runs.ts) on the one
 * side, and on the other a platform in memory that answers from journal and script. A pass ends when the run ends
 * or, with replays, when everything that it does waits.
 */
import { createAnswerOrder } from '../executors/answer-order.ts';
import { type ChildRuns, createChildRuns } from '../executors/child-runs.ts';
import { createOutbox } from '../executors/lines.ts';
import type { ChildMessage, ContextTuple } from '../executors/protocol.ts';
import { answerJson, readRefusal } from '../executors/questions.ts';
import type { Skills } from '../executors/skill-calls.ts';
import { createReplayOrder, type ReplayOrder } from '../jobs/replay-order.ts';
import { JournalFault, nextTold } from '../journal/records.ts';
import { wholeRun } from '../journal/run-part.ts';
import { createRunSteps, type RunSteps, type SaidMessage } from '../journal/run-steps.ts';
import { createWaitScope, type WaitScope } from '../journal/wait-scope.ts';
import { bind } from '../kernel/bind.ts';
import { isMemoryVerb } from '../memories/memory-verbs.ts';
import type { LogFields } from '../skills/definition.ts';
import type { RunSettings } from '../skills/settings.ts';
import { answerGenerate, endingOf, type RunChild } from './answers.ts';
import {
  beginPass,
  beginStep,
  beginWait,
  endNextWaits,
  endStep,
  resultOf,
  type ScriptedJournal,
} from './journal.ts';
import { askMemory, restoreMemory, type ScriptedMemory } from './memory.ts';
import type { Script } from './script.ts';
import { ScriptError, type SkillRun } from './types.ts';

export interface PassDeps {
  readonly journal: ScriptedJournal;
  readonly script: Script;
  readonly memory: ScriptedMemory;
  readonly skills: Skills;
  /** Reports of the run, of all its passes. */
  readonly reports: { readonly logs: unknown[]; readonly progress: unknown[] };
  readonly child: RunChild;
  /** The settings of a skill that the run calls; throws where one is missing. */
  settingsOf(skill: string): RunSettings | undefined;
}

/** What is executed. */
export interface PassRun {
  readonly skill: string;
  readonly context: ContextTuple;
  readonly input: unknown;
  readonly replay: boolean;
  readonly settings: RunSettings | undefined;
  /** Aborted to stop the run, with an error. */
  readonly signal: AbortSignal;
}

export type PassEnd =
  | { readonly kind: 'completed'; readonly output: unknown; readonly said: readonly SaidMessage[] }
  | {
      readonly kind: 'failed';
      readonly code: string;
      readonly message: string;
      readonly retryable: boolean;
      readonly stack: string | null;
    }
  | { readonly kind: 'waiting' };

interface Pass {
  readonly deps: PassDeps;
  readonly replay: boolean;
  readonly ended: PromiseWithResolvers<PassEnd>;
  /** Aborts at the end of the pass. */
  readonly over: AbortController;
  readonly scope: WaitScope;
  readonly order: ReplayOrder;
  readonly steps: RunSteps;
  readonly said: SaidMessage[];
  /** The scopes of open steps, by number. */
  readonly scopes: Map<number, WaitScope>;
  /** The open waits, by number: each is called when its wait has ended. */
  readonly waits: Map<number, () => void>;
  readonly runs: ChildRuns;
  readonly deliver: ReturnType<typeof createAnswerOrder>;
  asked: number;
}

type Ask = Extract<ChildMessage, ['ask', ...unknown[]]>;

/**
 * How long the end of a step is held for code that asks for an earlier one; less than on the platform, so that a
 * test of diverging code ends soon.
 */
const patienceMs = 500;
/** A pass has one run. */
const runId = 1;

/** Rejects with a ScriptError where the script has no answer. */
export async function runPass(deps: PassDeps, run: PassRun): Promise<PassEnd> {
  beginPass(deps.journal);
  const pass = newPass(deps, run.replay);
  const abort = () => {
    const { name, message } = run.signal.reason as Error;
    const isTimeout = name === 'TimeoutError';
    pass.runs.abort(runId, isTimeout ? 'TimeoutError' : 'AbortError', message);
  };
  try {
    pass.runs.start(runId, run.skill, run.context, run.input, run.settings);
    if (run.signal.aborted) abort();
    else run.signal.addEventListener('abort', abort);
    return await pass.ended.promise;
  } finally {
    pass.over.abort();
    run.signal.removeEventListener('abort', abort);
  }
}

function newPass(deps: PassDeps, replay: boolean): Pass {
  const { journal, memory, skills } = deps;
  const over = new AbortController();
  const said: SaidMessage[] = [];
  const outbox = createOutbox((line) => takeLine(pass, line));
  const runs = createChildRuns(skills, outbox, journal.clock);
  const pass: Pass = {
    ...{ deps, replay, over, said, runs, asked: 0 },
    ended: Promise.withResolvers(),
    scope: createWaitScope(() => setImmediate(whenBlocked, pass)),
    order: createReplayOrder(placesOf(journal), over.signal, patienceMs),
    steps: createRunSteps({
      part: wholeRun,
      journal: bind(journal, { beginStep, endStep }),
      memory: () => ({ restore: (changes) => restoreMemory(memory, changes) }),
      mayCall: async () => true,
      said,
    }),
    scopes: new Map(),
    waits: new Map(),
    deliver: createAnswerOrder((message) => {
      if (message[0] === 'answer') runs.answer(message[1], message[2], message[3]);
      else runs.refuse(message[1], message[2], message[3]);
    }),
  };
  return pass;
}

function placesOf(journal: ScriptedJournal) {
  return {
    next: () => journal.records.nextEnd++,
    note(n: number, place: number) {
      const row = journal.rows[n - 1];
      if (row !== undefined) row.told = place;
    },
    awaited: () => nextTold(journal.records),
  };
}

/** Everything that the run does waits: it is dropped and executed again, or told the next end. */
function whenBlocked(pass: Pass): void {
  if (pass.over.signal.aborted || !pass.scope.isBlocked()) return;
  if (pass.replay) {
    pass.runs.suspend(runId, pass.asked);
    return;
  }
  for (const { n } of endNextWaits(pass.deps.journal)) pass.waits.get(n)?.();
}

function takeLine(pass: Pass, line: string): void {
  for (const message of JSON.parse(line) as ChildMessage[]) {
    if (!pass.over.signal.aborted) takeMessage(pass, message);
  }
}

function takeMessage(pass: Pass, message: ChildMessage): void {
  const { ended, said, steps, deps } = pass;
  switch (message[0]) {
    case 'done':
      ended.resolve({ kind: 'completed', output: message[2], said });
      return;
    case 'fail': {
      const [, , code, text, retryable, stack] = message;
      ended.resolve({ kind: 'failed', code, message: text, retryable, stack });
      return;
    }
    case 'waiting':
      ended.resolve({ kind: 'waiting' });
      return;
    case 'message': {
      const [, , role, content, step] = message;
      steps.say(step, { role, content, at: deps.journal.clock.now() });
      return;
    }
    case 'ask':
      void answer(pass, message);
      return;
    default:
      takeReport(deps, message);
  }
}

/** What a replay says was said before. */
function takeReport({ journal, reports }: PassDeps, message: ChildMessage): void {
  if (journal.records.pending.size > 0) return;
  if (message[0] === 'log') {
    const [, , , text, json] = message;
    const fields = json === null ? undefined : (JSON.parse(json) as LogFields);
    reports.logs.push({ message: text, fields } satisfies SkillRun['logs'][number]);
  }
  if (message[0] === 'progress') {
    const [, , fraction, note] = message;
    reports.progress.push({ fraction, note: note ?? undefined });
  }
}

async function answer(pass: Pass, ask: Ask): Promise<void> {
  const [, , id] = ask;
  pass.asked += 1;
  try {
    const value = JSON.parse(answerJson(await answerAsk(pass, ask))) as unknown;
    if (!pass.over.signal.aborted) pass.deliver([['answer', runId, id, value]]);
  } catch (error) {
    if (pass.over.signal.aborted) return;
    if (error instanceof ScriptError) pass.ended.reject(error);
    else if (error instanceof JournalFault) {
      const { code, message, retryable } = error;
      pass.ended.resolve({ kind: 'failed', code, message, retryable, stack: null });
    } else pass.deliver([['refuse', runId, id, readRefusal(error)]]);
  }
}

async function answerAsk(pass: Pass, ask: Ask): Promise<unknown> {
  const [, , , kind, payload, step] = ask;
  const scope = (step === null ? undefined : pass.scopes.get(step)) ?? pass.scope;
  if (kind === 'wait') return answerWait(pass, payload, step, scope);
  const done = scope.work();
  try {
    return await answerWork(pass, ask, scope);
  } finally {
    done();
  }
}

async function answerWork(pass: Pass, ask: Ask, scope: WaitScope): Promise<unknown> {
  const { deps, steps, order } = pass;
  const [, , , kind, payload, step] = ask;
  if (kind === 'begin-step') return answerBeginStep(pass, payload, step, scope);
  if (kind === 'end-step') {
    const ended = await order.write(
      (place) => steps.end(payload, place, false),
      steps.placeBefore(payload),
    );
    const { step: n } = payload as { step: number };
    pass.scopes.get(n)?.close();
    pass.scopes.delete(n);
    return ended;
  }
  if (kind === 'generate') return answerGenerate(deps, payload, steps.partOf(step));
  if (isMemoryVerb(kind)) return askMemory(deps.memory, kind, payload, steps.partOf(step).note);
  throw new ScriptError(`runSkill cannot answer ${kind}`);
}

async function answerBeginStep(
  pass: Pass,
  payload: unknown,
  step: number | null,
  scope: WaitScope,
): Promise<unknown> {
  const turn = pass.order.enter();
  try {
    const begun = await pass.steps.begin(payload, step, turn.recorded);
    if ('step' in begun) {
      const opened = scope.open();
      // What a named step does is not seen, so it never counts as waiting.
      if ((payload as { kind?: unknown }).kind === 'step') opened.work();
      pass.scopes.set(begun.step, opened);
      const { kind, name } = payload as { kind: string; name: string };
      const settings = kind === 'skill' ? pass.deps.settingsOf(name) : undefined;
      if (settings !== undefined) return { ...begun, settings };
    }
    return begun;
  } finally {
    turn.notRecorded();
  }
}

async function answerWait(
  pass: Pass,
  payload: unknown,
  step: number | null,
  scope: WaitScope,
): Promise<unknown> {
  const { deps, order, steps, waits } = pass;
  const turn = order.enter();
  const begun = scope.work();
  let close: () => void = () => {};
  try {
    const wanted = steps.readWait(payload, step);
    const row = await beginWait(deps.journal, wanted, (input, dueAt) =>
      endingOf(deps, wanted, input, dueAt),
    );
    const { n } = row;
    if (row.status === 'waiting') {
      turn.notRecorded();
      const end = Promise.withResolvers<void>();
      waits.set(n, end.resolve);
      close = scope.wait();
      begun();
      await end.promise;
      // The run is not dropped before it was told the end.
      const telling = scope.work();
      await turn.ended(n);
      telling();
    } else await turn.recorded({ n, at: row.at, told: row.told });
    const result = resultOf(row);
    if ('error' in result) throw Object.assign(new Error(), result.error, { at: row.at });
    return { value: result.value, at: row.at };
  } finally {
    turn.notRecorded();
    begun();
    close();
  }
}
