/** The executors of a test: the code of a child process (src/core/executors/child/child-runs.ts), in the process of the test. */
import { type ActiveRun, countAsk, readReport } from '../../core/executors/active-run.ts';
import { createAnswerOrder } from '../../core/executors/child/answer-order.ts';
import { ChildRuns } from '../../core/executors/child/child-runs.ts';
import { Outbox } from '../../core/executors/lines.ts';
import type { ChildMessage, ContextTuple } from '../../core/executors/protocol.ts';
import { answerQuestion, type Question } from '../../core/executors/questions.ts';
import { KnownSecrets } from '../../core/executors/redaction.ts';
import type { RunHandle, RunHandlers, RunOutcome, RunRequest } from '../../core/executors/run.ts';
import type { TestClock } from './clock.ts';
import type { Script } from './script.ts';
import type { StandIns } from './stand-ins.ts';

/** The number of a run: each has a child of its own. */
const runId = 1;
/** Time for the code of a run to end once it was asked to stop. */
const graceMs = 1_000;

export class TestExecutors {
  readonly script: Script;
  readonly clock: TestClock;
  readonly standIns: StandIns;
  /** The ids of jobs as their code sees them. */
  readonly #shown = new Map<string, { readonly job: string; readonly conversation: string }>();
  /** How the last run of each job ended. */
  readonly outcomes = new Map<string, RunOutcome>();
  /** Whether no further run begins. */
  isClosed = false;

  constructor(script: Script, clock: TestClock, standIns: StandIns) {
    this.script = script;
    this.clock = clock;
    this.standIns = standIns;
  }

  run(request: RunRequest, handlers: RunHandlers): RunHandle {
    return new TestRun(this, request, handlers);
  }

  /** The context of a run, with the ids that the test gives; those of child jobs are numbered. */
  contextOf({ context }: RunRequest): ContextTuple {
    const { jobId, agentId, organizationId, attempt, now, path = '' } = context;
    const { jobId: job = 'job-1', conversationId: conversation = 'conversation-1' } =
      this.script.options;
    const count = this.#shown.size;
    const shown =
      this.#shown.get(jobId) ??
      (count === 0
        ? { job, conversation }
        : { job: `${job}-${count}`, conversation: `${conversation}-${count}` });
    this.#shown.set(jobId, shown);
    return [shown.job, agentId, shown.conversation, organizationId, attempt, now, path];
  }
}

class TestRun implements RunHandle {
  readonly #executors: TestExecutors;
  readonly #request: RunRequest;
  readonly #handlers: RunHandlers;
  readonly #outbox: Outbox;
  readonly #child: ChildRuns;
  readonly #active: ActiveRun;
  readonly #deliver: ReturnType<typeof createAnswerOrder>;
  readonly #ended = Promise.withResolvers<RunOutcome>();
  readonly #secrets = new KnownSecrets();
  #isOver = false;
  readonly #onStop = () => {
    const { name, message } = this.#executors.script.signal.reason as Error;
    this.#stop(name === 'TimeoutError' ? 'timeout' : 'abort', message);
  };

  constructor(executors: TestExecutors, request: RunRequest, handlers: RunHandlers) {
    const { clock, standIns, script } = executors;
    this.#executors = executors;
    this.#request = request;
    this.#handlers = handlers;
    this.#active = newRun(request, handlers, clock.now());
    this.#outbox = new Outbox((line) => this.#takeLine(line));
    const child = new ChildRuns(standIns.skillsOf(request), this.#outbox, clock);
    this.#child = child;
    this.#deliver = createAnswerOrder((message) => {
      if (message[0] === 'answer') child.answer(runId, message[2], message[3]);
      else child.refuse(runId, message[2], message[3]);
    });
    script.signal.addEventListener('abort', this.#onStop);
    void this.#begin();
  }

  get outcome(): Promise<RunOutcome> {
    return this.#ended.promise;
  }

  abort(reason: string): void {
    this.#stop('abort', reason);
  }

  /** Without replays the run stays loaded, and the time goes on. */
  suspend(): void {
    const { script } = this.#executors;
    const { asked } = this.#active;
    if (this.#isOver) return;
    if (script.options.replay ?? true) {
      this.#child.suspend(runId, asked);
      return;
    }
    // An answer that came before lets the code go on first, as in ChildRuns.
    setImmediate(() => {
      this.#outbox.flush();
      if (this.#isOver || this.#active.asked !== asked) return;
      script.idle.add(this.#request.context.jobId);
      script.notify();
    });
  }

  async #begin(): Promise<void> {
    const { skill, input, settings } = this.#request;
    const handlers = this.#handlers;
    const isPermitted = handlers.confirmStart === undefined || (await handlers.confirmStart());
    const { script, isClosed } = this.#executors;
    const isStopped = script.signal.aborted || this.#active.stopRequest !== undefined;
    if (!isPermitted || isClosed || isStopped) return this.#finish({ kind: 'aborted' });
    const context = this.#executors.contextOf(this.#request);
    this.#child.start(runId, skill, context, JSON.parse(input), settings);
  }

  #stop(cause: 'timeout' | 'abort', reason: string): void {
    if (this.#isOver || this.#active.stopRequest !== undefined) return;
    const request = { ping: 0, wasOnlyBegun: true, receivedAt: undefined, isOverdue: false };
    this.#active.stopRequest = { cause, ...request };
    this.#active.asking?.abort();
    this.#child.abort(runId, cause === 'timeout' ? 'TimeoutError' : 'AbortError', reason);
    this.#active.timer = setTimeout(() => this.#finish({ kind: 'aborted' }), graceMs);
  }

  #takeLine(line: string): void {
    for (const message of JSON.parse(line) as ChildMessage[]) {
      if (!this.#isOver) this.#take(message);
    }
  }

  #take(message: ChildMessage): void {
    switch (message[0]) {
      case 'done':
        this.#finish({ kind: 'completed', output: JSON.stringify(message[2]) });
        return;
      case 'fail': {
        const [, , code, text, retryable, stack] = message;
        const failure = { kind: 'failed', code, message: text, retryable } as const;
        this.#finish(stack === null ? failure : { ...failure, stack });
        return;
      }
      case 'waiting':
        this.#finish({ kind: 'waiting' });
        return;
      case 'log':
      case 'progress':
      case 'message': {
        const report = readReport(this.#active, message, this.#executors.clock.now());
        if (report !== undefined) this.#handlers.onReport(report);
        return;
      }
      case 'ask': {
        const [, , id, kind, payload, step] = message;
        countAsk(this.#active);
        void this.#answer({ id, kind, payload, step });
      }
    }
  }

  async #answer(question: Question): Promise<void> {
    const answer = await answerQuestion(this.#active, question, this.#secrets);
    this.#active.asks -= 1;
    if (!this.#isOver) this.#deliver([JSON.parse(answer)]);
  }

  #finish(reported: RunOutcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { stopRequest, timer, asking } = this.#active;
    const { script, outcomes } = this.#executors;
    clearTimeout(timer);
    asking?.abort();
    script.signal.removeEventListener('abort', this.#onStop);
    const outcome =
      stopRequest && reported.kind !== 'completed' ? { kind: 'aborted' as const } : reported;
    const { jobId, path } = this.#request.context;
    if (path === undefined) outcomes.set(jobId, outcome);
    this.#ended.resolve(outcome);
  }
}

function newRun(request: RunRequest, handlers: RunHandlers, startedAt: number): ActiveRun {
  return {
    id: runId,
    accepted: { request, handlers, settle() {} },
    ping: 0,
    pingBefore: 0,
    startedAt,
    stopRequest: undefined,
    timer: undefined,
    extraMs: 0,
    logLines: 0,
    messages: 0,
    asks: 0,
    asked: 0,
    isSuspending: false,
    asking: undefined,
  };
}
