/**
 * One execution of a run's code in this process: the executor's own code (src/core/executors/child-runs.ts) on the one
 * side, and on the other a platform in memory that answers from journal and script. A pass ends when the run ends
 * or, with replays, when everything that it does waits.
 */
import { createAnswerOrder } from '../../core/executors/answer-order.ts';
import { ChildRuns } from '../../core/executors/child-runs.ts';
import { Outbox } from '../../core/executors/lines.ts';
import type { ChildMessage, ContextTuple } from '../../core/executors/protocol.ts';
import { ReplayOrder } from '../../core/jobs/replay-order.ts';
import { nextPlace } from '../../core/journal/records.ts';
import { wholeRun } from '../../core/journal/run-part.ts';
import { type RunMessage, RunSteps } from '../../core/journal/run-steps.ts';
import { WaitScope } from '../../core/journal/wait-scope.ts';
import type { LogFields } from '../../core/skills/definition.ts';
import type { RunSettings } from '../../core/skills/settings.ts';
import { beginPass, beginStep, endNextWaits, endStep, type ScriptedJournal } from './journal.ts';
import { restoreMemory } from './memory.ts';
import { answer } from './pass-asks.ts';
import { type Pass, type PassDeps, type PassEnd, runId } from './pass-state.ts';
import type { SkillRun } from './types.ts';

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

/**
 * How long the end of a step is held for code that asks for an earlier one; less than on the platform, so that a
 * test of diverging code ends soon.
 */
const patienceMs = 500;
/** Rejects with a ScriptError where the script has no answer. */
export async function runPass(deps: PassDeps, run: PassRun): Promise<PassEnd> {
  beginPass(deps.answers.journal);
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
  const { memory, skills } = deps;
  const { journal } = deps.answers;
  const over = new AbortController();
  const said: RunMessage[] = [];
  const outbox = new Outbox((line) => takeLine(pass, line));
  const runs = new ChildRuns(skills, outbox, journal.clock);
  const pass: Pass = {
    deps,
    replay,
    over,
    said,
    runs,
    asked: 0,
    ended: Promise.withResolvers(),
    scope: new WaitScope(() => setImmediate(whenBlocked, pass)),
    order: new ReplayOrder(placesOf(journal), over.signal, patienceMs),
    steps: new RunSteps({
      part: wholeRun,
      journal: {
        beginStep: (step) => beginStep(journal, step),
        endStep: (step, end) => endStep(journal, step, end),
      },
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
    awaited: () => nextPlace(journal.records),
  };
}

/** Everything that the run does waits: it is dropped and executed again, or told the next end. */
function whenBlocked(pass: Pass): void {
  if (pass.over.signal.aborted || !pass.scope.isBlocked()) return;
  if (pass.replay) {
    pass.runs.suspend(runId, pass.asked);
    return;
  }
  for (const { n } of endNextWaits(pass.deps.answers.journal)) pass.waits.get(n)?.();
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
      steps.addMessage(step, { role, content, at: deps.answers.journal.clock.now() });
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
function takeReport({ answers, reports }: PassDeps, message: ChildMessage): void {
  if (answers.journal.records.pending.size > 0) return;
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
