/**
 * The runs of a child: starts them, takes their outcomes, and puts their messages into the outbox. A run
 * ends once: its skill returns or throws, or its code throws an error elsewhere. Later messages are
 * dropped.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as elapsed } from 'node:timers/promises';
import { ShortLivedMap } from '../../kernel/short-lived-map.ts';
import type { RunSettings } from '../skills/settings.ts';
import { describeFailure, type Failure, plainFailure } from './failure.ts';
import type { Outbox } from './lines.ts';
import { readOutput } from './output.ts';
import { newPart, noteTime, type Platform, type Run, type RunClock } from './part.ts';
import { createProgress, type Progress } from './progress.ts';
import type { ContextTuple, Refusal } from './protocol.ts';
import { redacted, redactedJson } from './redaction.ts';
import { createContext } from './run-context.ts';
import { abortRun } from './run-signal.ts';
import { callSkill, type Runnable, type Skills } from './skill-calls.ts';

export interface ChildRuns {
  start(
    id: number,
    skill: string,
    context: ContextTuple,
    input: unknown,
    settings?: RunSettings,
  ): void;
  abort(id: number, name: string, reason: string): void;
  /** Drops the run if it has asked as many questions as the parent has seen, and does not go on. */
  suspend(id: number, asks: number): void;
  answer(id: number, askId: number, value: unknown): void;
  refuse(id: number, askId: number, refusal: Refusal): void;
  /** The run whose code is executing, which may have ended; undefined outside of runs. */
  current(): Run | undefined;
  /** Ends a run that has not ended; false when it has. */
  fail(run: Run, failure: Failure): boolean;
}

const systemClock: RunClock = {
  now: () => Date.now(),
  pause: (ms, signal) => elapsed(ms, undefined, { signal }),
};

interface State {
  readonly skills: Skills;
  readonly outbox: Outbox;
  readonly progress: Progress;
  readonly platform: Platform;
  readonly inFlight: ShortLivedMap<number, Run>;
  /** The run to which the executing code belongs. */
  readonly scope: AsyncLocalStorage<Run>;
}

export function createChildRuns(
  skills: Skills,
  outbox: Outbox,
  clock: RunClock = systemClock,
): ChildRuns {
  const progress = createProgress(outbox);
  const state: State = {
    skills,
    outbox,
    progress,
    platform: {
      clock,
      outbox,
      progress,
      callSkill: (caller, name, input) => callSkill(skills, caller, name, input),
    },
    inFlight: new ShortLivedMap(),
    scope: new AsyncLocalStorage(),
  };
  const { inFlight, scope } = state;
  return {
    start: (id, skill, context, ...given) => start(state, id, skill, context, ...given),
    abort(id, name, reason) {
      const run = inFlight.get(id);
      // Listeners of the signal are the run's code.
      if (run !== undefined) scope.run(run, abortRun, run, name, reason);
    },
    suspend: (id, asks) => suspend(state, id, asks),
    answer(id, askId, value) {
      takeAsk(inFlight.get(id), askId)?.resolve(value);
    },
    refuse(id, askId, { message, code, retryable, at }) {
      const run = inFlight.get(id);
      if (run !== undefined) noteTime(run, at);
      takeAsk(run, askId)?.reject(
        Object.assign(new Error(message), {
          ...(code === undefined ? {} : { code }),
          ...(retryable === undefined ? {} : { retryable }),
        }),
      );
    },
    current: () => scope.getStore(),
    fail: (run, failure) => fail(state, run, failure),
  };
}

function start(
  state: State,
  id: number,
  name: string,
  context: ContextTuple,
  input: unknown,
  settings?: RunSettings,
): void {
  const run: Run = {
    id,
    skill: name,
    context,
    isOver: false,
    isSuspended: false,
    controller: undefined,
    abortedWith: undefined,
    logLines: 0,
    messages: 0,
    asked: 0,
    asks: undefined,
    now: context[5],
    secrets: undefined,
    prints: undefined,
  };
  state.inFlight.set(id, run);
  const skill = state.skills.get(name);
  if (skill === undefined) fail(state, run, plainFailure(`there is no skill ${name}`, false));
  else state.scope.run(run, execute, state, run, skill, input, settings);
}

function execute(
  state: State,
  run: Run,
  skill: Runnable,
  input: unknown,
  settings: RunSettings | undefined,
): void {
  try {
    const { platform } = state;
    const fields = { run, platform, depth: 0, step: null, path: run.context[6] };
    const part = newPart(fields, settings);
    const result = skill.run(input, createContext(part));
    if (typeof (result as PromiseLike<unknown> | undefined)?.then !== 'function') {
      finish(state, run, skill, result);
      return;
    }
    Promise.resolve(result).then(
      (value) => finish(state, run, skill, value),
      (error) => fail(state, run, describeFailure(error, run)),
    );
  } catch (error) {
    fail(state, run, describeFailure(error, run));
  }
}

function finish(state: State, run: Run, skill: Runnable, value: unknown): void {
  if (run.isOver) return;
  const output = readOutput(value, skill.validateOutput);
  if ('failure' in output) {
    fail(state, run, output.failure);
    return;
  }
  end(state, run);
  state.outbox.push(`["done",${run.id},${redactedJson(run, output.json)}]`);
}

function fail(state: State, run: Run, failure: Failure): boolean {
  if (run.isOver) return false;
  end(state, run);
  const { code, retryable } = failure;
  const message = redacted(run, failure.message);
  const stack = failure.stack === null ? null : redacted(run, failure.stack);
  state.outbox.push(JSON.stringify(['fail', run.id, code, message, retryable, stack]));
  return true;
}

/**
 * An answer that came with the request lets the run's code go on first, for one turn of the event loop.
 * None of its promises ever settles, so that no `catch` or `finally` of the run sees its end.
 */
function suspend(state: State, id: number, asks: number): void {
  const run = state.inFlight.get(id);
  if (run === undefined) return;
  setImmediate(() => {
    if (run.isOver || run.abortedWith !== undefined || run.asked !== asks) return;
    end(state, run);
    run.isSuspended = true;
    run.asks = undefined;
    state.outbox.push(`["waiting",${id}]`);
  });
}

function end({ inFlight, progress, outbox }: State, run: Run): void {
  run.isOver = true;
  inFlight.delete(run.id);
  progress.flush(run);
  if (run.prints === undefined) return;
  for (const [stream, pieces] of Object.entries(run.prints)) {
    const text = pieces.rest();
    if (text !== '') outbox.push(JSON.stringify(['print', run.id, stream, text]));
  }
}

function takeAsk(run: Run | undefined, askId: number): PromiseWithResolvers<unknown> | undefined {
  const answer = run?.asks?.get(askId);
  run?.asks?.delete(askId);
  return answer;
}
