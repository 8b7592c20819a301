/**
 * The runs of a child: starts them, takes their outcomes, and puts their messages into the outbox. A run
 * ends once: its skill returns or throws, or its code throws an error elsewhere. Later messages are
 * dropped.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as elapsed } from 'node:timers/promises';
import { ShortLivedMap } from '../../../kernel/short-lived-map.ts';
import type { RunSettings } from '../../skills/settings.ts';
import type { Outbox } from '../lines.ts';
import type { ContextTuple, Refusal } from '../protocol.ts';
import { redacted, redactedJson } from '../redaction.ts';
import { describeFailure, type Failure, plainFailure } from './failure.ts';
import { readOutput } from './output.ts';
import {
  newPart,
  noteTime,
  type Platform,
  type Run,
  type RunClock,
  type Runnable,
  type Skills,
} from './part.ts';
import { Progress } from './progress.ts';
import { createContext } from './run-context.ts';
import { abortRun } from './run-signal.ts';

const systemClock: RunClock = {
  now: () => Date.now(),
  pause: (ms, signal) => elapsed(ms, undefined, { signal }),
};

export class ChildRuns {
  readonly #outbox: Outbox;
  readonly #progress: Progress;
  readonly #platform: Platform;
  readonly #inFlight = new ShortLivedMap<number, Run>();
  /** The run to which the executing code belongs. */
  readonly #scope = new AsyncLocalStorage<Run>();

  constructor(skills: Skills, outbox: Outbox, clock: RunClock = systemClock) {
    this.#outbox = outbox;
    this.#progress = new Progress(outbox);
    this.#platform = { skills, clock, outbox, progress: this.#progress };
  }

  /** Begins a run; its outcome is a message. */
  start(
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
      transfer: undefined,
      now: context[5],
      secrets: undefined,
      prints: undefined,
    };
    this.#inFlight.set(id, run);
    const skill = this.#platform.skills.get(name);
    if (skill === undefined) this.fail(run, plainFailure(`there is no skill ${name}`, false));
    else this.#scope.run(run, () => this.#execute(run, skill, input, settings));
  }

  #execute(run: Run, skill: Runnable, input: unknown, settings: RunSettings | undefined): void {
    try {
      const platform = this.#platform;
      const fields = { run, platform, depth: 0, step: null, path: run.context[6] };
      const part = newPart(fields, settings);
      const result = skill.run(input, createContext(part));
      if (typeof (result as PromiseLike<unknown> | undefined)?.then !== 'function') {
        this.#finish(run, skill, result);
        return;
      }
      Promise.resolve(result).then(
        (value) => this.#finish(run, skill, value),
        (error) => this.fail(run, describeFailure(error, run)),
      );
    } catch (error) {
      this.fail(run, describeFailure(error, run));
    }
  }

  #finish(run: Run, skill: Runnable, value: unknown): void {
    if (run.isOver) return;
    const output = readOutput(value, skill.validateOutput);
    if ('failure' in output) {
      this.fail(run, output.failure);
      return;
    }
    this.#end(run);
    this.#outbox.push(`["done",${run.id},${redactedJson(run, output.json)}]`);
  }

  /** Ends a run that has not ended; false when it has. */
  fail(run: Run, failure: Failure): boolean {
    if (run.isOver) return false;
    this.#end(run);
    const { code, retryable, retryAfterMs } = failure;
    const message = redacted(run, failure.message);
    const stack = failure.stack === null ? null : redacted(run, failure.stack);
    const failed = ['fail', run.id, code, message, retryable, stack, retryAfterMs];
    this.#outbox.push(JSON.stringify(failed));
    return true;
  }

  /**
   * Drops the run if it has asked as many questions as the parent has seen, and does not go on.
   * An answer that came with the request lets the run's code go on first, for one turn of the event loop.
   * None of its promises ever settles, so that no `catch` or `finally` of the run sees its end.
   */
  suspend(id: number, asks: number): void {
    const run = this.#inFlight.get(id);
    if (run === undefined) return;
    setImmediate(() => {
      if (run.isOver || run.abortedWith !== undefined || run.asked !== asks) return;
      this.#end(run);
      run.isSuspended = true;
      run.asks = undefined;
      this.#outbox.push(`["waiting",${id}]`);
    });
  }

  #end(run: Run): void {
    run.isOver = true;
    this.#inFlight.delete(run.id);
    this.#progress.flush(run);
    if (run.prints === undefined) return;
    for (const [stream, pieces] of Object.entries(run.prints)) {
      const text = pieces.rest();
      if (text !== '') this.#outbox.push(JSON.stringify(['print', run.id, stream, text]));
    }
  }

  abort(id: number, name: string, reason: string): void {
    const run = this.#inFlight.get(id);
    // Listeners of the signal are the run's code.
    if (run !== undefined) this.#scope.run(run, abortRun, run, name, reason);
  }

  answer(id: number, askId: number, value: unknown): void {
    takeAsk(this.#inFlight.get(id), askId)?.resolve(value);
  }

  refuse(id: number, askId: number, { message, code, retryable, at }: Refusal): void {
    const run = this.#inFlight.get(id);
    if (run !== undefined) noteTime(run, at);
    takeAsk(run, askId)?.reject(
      Object.assign(new Error(message), {
        ...(code === undefined ? {} : { code }),
        ...(retryable === undefined ? {} : { retryable }),
      }),
    );
  }

  /** The run whose code is executing, which may have ended; undefined outside of runs. */
  current(): Run | undefined {
    return this.#scope.getStore();
  }
}

function takeAsk(run: Run | undefined, askId: number): PromiseWithResolvers<unknown> | undefined {
  const answer = run?.asks?.get(askId);
  run?.asks?.delete(askId);
  return answer;
}
