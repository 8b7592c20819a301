/**
 * The runs of a child: starts them, takes their outcomes, and puts their messages into the outbox. A run
 * ends once: its skill returns or throws, or its code throws an error elsewhere. Later messages are
 * dropped. The only timer is the one for progress, which all runs share.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import type { Validate } from '../kernel/json-schema.ts';
import { refusal } from '../kernel/refusal.ts';
import { canonicalJson } from '../kernel/text.ts';
import type { SkillDefinition } from '../skills/definition.ts';
import { describeFailure, type Failure, plainFailure } from './failure.ts';
import { PROGRESS_MS } from './limits.ts';
import type { Outbox } from './lines.ts';
import { readOutput } from './output.ts';
import type { ContextTuple, Refusal } from './protocol.ts';
import {
  abortRun,
  ask,
  askJson,
  type Bridge,
  createContext,
  type Part,
  type Run,
} from './run-context.ts';

/** A skill as the child runs it. */
export interface Runnable {
  readonly run: SkillDefinition['run'];
  readonly validateInput: Validate;
  readonly validateOutput: Validate;
}

export interface ChildRuns {
  start(id: number, skill: string, context: ContextTuple, input: unknown): void;
  abort(id: number, name: string, reason: string): void;
  answer(id: number, askId: number, value: unknown): void;
  refuse(id: number, askId: number, refusal: Refusal): void;
  /** The run whose code is executing, which may have ended; undefined outside of runs. */
  current(): Run | undefined;
  /** Ends a run that has not ended; false when it has. */
  fail(run: Run, failure: Failure): boolean;
}

export function createChildRuns(skills: ReadonlyMap<string, Runnable>, outbox: Outbox): ChildRuns {
  const inFlight = new Map<number, Run>();
  const scope = new AsyncLocalStorage<Run>();
  const progress = createProgress(outbox);

  const bridge: Bridge = {
    sayLog(run, at, message, fieldsJson) {
      progress.flush(run);
      outbox.push(JSON.stringify(['log', run.id, at, message, fieldsJson]));
    },
    sayProgress: progress.report,
    sayMessage(run, role, content, step) {
      progress.flush(run);
      outbox.push(JSON.stringify(['message', run.id, role, content, step]));
    },
    sayAsk: (run, askId, kind, payloadJson, step) =>
      outbox.push(`["ask",${run.id},${askId},${JSON.stringify(kind)},${payloadJson},${step}]`),
    call,
  };

  function execute(run: Run, skill: Runnable, input: unknown): void {
    try {
      const result = skill.run(
        input,
        createContext(run, bridge, { depth: 0, step: null, calls: new Map() }),
      );
      if (typeof (result as PromiseLike<unknown> | undefined)?.then !== 'function') {
        finish(run, skill, result);
        return;
      }
      Promise.resolve(result).then(
        (value) => finish(run, skill, value),
        (error) => fail(run, describeFailure(error)),
      );
    } catch (error) {
      fail(run, describeFailure(error));
    }
  }

  function finish(run: Run, skill: Runnable, value: unknown): void {
    if (run.isOver) return;
    const output = readOutput(value, skill.validateOutput);
    if ('failure' in output) {
      fail(run, output.failure);
      return;
    }
    end(run);
    outbox.push(`["done",${run.id},${output.json}]`);
  }

  function fail(run: Run, failure: Failure): boolean {
    if (run.isOver) return false;
    end(run);
    const { code, message, retryable, stack } = failure;
    outbox.push(JSON.stringify(['fail', run.id, code, message, retryable, stack]));
    return true;
  }

  function end(run: Run): void {
    run.isOver = true;
    inFlight.delete(run.id);
    progress.flush(run);
  }

  /** A call is a step of the run: its output is recorded before the call resolves. */
  async function call(run: Run, caller: Part, name: string, input: unknown): Promise<unknown> {
    const skill = skills.get(name);
    if (skill === undefined) throw refusal(`there is no skill ${name}`);
    const json = JSON.stringify(input) ?? 'null';
    const copy: unknown = JSON.parse(json);
    const issues = skill.validateInput(copy);
    if (issues !== null) {
      const list = issues.map(({ field, issue }) => `${field} ${issue}`).join('; ');
      throw refusal(`the input of ${name} breaks its schema: ${list}`);
    }
    const digest = digestOf(copy);
    const wanted = { kind: 'skill', name, digest, nth: countCall(caller, `${name} ${digest}`) };
    const answer = await ask(run, bridge, 'begin-step', wanted, caller.step);
    const begun = answer as { step: number } | { output: unknown };
    if ('output' in begun) return begun.output;
    if (run.isOver) throw new Error('this run has ended');
    const { step } = begun;
    try {
      const part = { depth: caller.depth + 1, step, calls: new Map() };
      const value = await skill.run(copy, createContext(run, bridge, part));
      const output = readOutput(value, skill.validateOutput);
      if ('failure' in output) throw refusal(`${name} failed: ${output.failure.message}`);
      await endStep(run, step, `"output":${output.json}`);
      return JSON.parse(output.json);
    } catch (error) {
      const { code, message } = describeFailure(error);
      // The caller gets the call's own error, even when it can no longer be recorded.
      await endStep(run, step, `"error":${JSON.stringify({ code, message })}`).catch(() => {});
      throw error;
    }
  }

  function endStep(run: Run, step: number, ending: string): Promise<unknown> {
    return askJson(run, bridge, 'end-step', `{"step":${step},${ending}}`, step);
  }

  return {
    start(id, name, context, input) {
      const run: Run = {
        id,
        skill: name,
        context,
        isOver: false,
        controller: undefined,
        abortedWith: undefined,
        logLines: 0,
        messages: 0,
        asks: undefined,
      };
      inFlight.set(id, run);
      const skill = skills.get(name);
      if (skill === undefined) fail(run, plainFailure(`there is no skill ${name}`, false));
      else scope.run(run, execute, run, skill, input);
    },
    abort(id, name, reason) {
      const run = inFlight.get(id);
      // Listeners of the signal are the run's code.
      if (run !== undefined) scope.run(run, abortRun, run, name, reason);
    },
    answer(id, askId, value) {
      takeAsk(inFlight.get(id), askId)?.resolve(value);
    },
    refuse(id, askId, { message, code, retryable }) {
      takeAsk(inFlight.get(id), askId)?.reject(
        Object.assign(new Error(message), {
          ...(code === undefined ? {} : { code }),
          ...(retryable === undefined ? {} : { retryable }),
        }),
      );
    },
    current: () => scope.getStore(),
    fail,
  };
}

/** The ordinal of this call among the equal calls of its caller, from 1. */
function countCall({ calls }: Part, call: string): number {
  const nth = (calls.get(call) ?? 0) + 1;
  calls.set(call, nth);
  return nth;
}

/** Equal for equal inputs, whatever the order of their fields. */
function digestOf(input: unknown): string {
  return createHash('sha256').update(canonicalJson(input)).digest('base64url').slice(0, 22);
}

function takeAsk(run: Run | undefined, askId: number): PromiseWithResolvers<unknown> | undefined {
  const answer = run?.asks?.get(askId);
  run?.asks?.delete(askId);
  return answer;
}

/** Sends the first progress at once, then at most one of a run every PROGRESS_MS, unless flushed. */
function createProgress(outbox: Outbox): {
  report: Bridge['sayProgress'];
  /** Sends the run's waiting progress, so that its next message comes after. */
  flush: (run: Run) => void;
} {
  const latest = new Map<Run, string>();
  let isQuiet = true;
  const send = (): void => {
    isQuiet = latest.size === 0;
    if (isQuiet) return;
    for (const message of latest.values()) outbox.push(message);
    latest.clear();
    setTimeout(send, PROGRESS_MS);
  };
  return {
    report(run, fraction, note) {
      latest.set(run, JSON.stringify(['progress', run.id, fraction, note]));
      if (isQuiet) send();
    },
    flush(run) {
      const message = latest.size === 0 ? undefined : latest.get(run);
      if (message === undefined) return;
      latest.delete(run);
      outbox.push(message);
    },
  };
}
