/**
 * The active runs of one executor: their deadlines, the stop request at a deadline or an abort, the
 * grace period after it, and the outcome of a run that ends in that period. Charges a deadline to a run
 * only when the child's event loop answered or no other run's code had begun, and extends the deadline
 * by the time for which another run blocked the loop. The executor decides whether the child must die.
 */
import type { Clock } from '../../kernel/clock.ts';
import { ShortLivedMap } from '../../kernel/short-lived-map.ts';
import {
  type AcceptedRun,
  type ActiveRun,
  type StopRequest,
  timeoutMessage,
} from './active-run.ts';
import type { Channel } from './channel.ts';
import type { Suspect } from './death-attribution.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { BegunRun } from './now-running.ts';
import type { ContextTuple } from './protocol.ts';
import type { RunOutcome } from './run.ts';

/** A child that is silent for this many milliseconds counts as blocked. */
const blockedMs = 100;

export interface ActiveRunLimits {
  /** Milliseconds that a run has to end after its stop request. */
  readonly graceMs: number;
  /** False while a debugger may pause the runs: then no run reaches its deadline. */
  readonly hasDeadlines: boolean;
}

/** A ping that was sent because a run is past its deadline. */
interface DeadlineProbe {
  readonly ping: number;
  /** When the child's silence began, in the clock's monotonic milliseconds. */
  readonly since: number;
  /** The run's code had begun. */
  readonly hadBegun: boolean;
}

export class ActiveRuns {
  readonly #channel: Channel;
  readonly #heartbeat: Heartbeat;
  readonly #clock: Clock;
  readonly #limits: ActiveRunLimits;
  readonly #onOverdue: (run: ActiveRun) => void;
  readonly #begun: () => BegunRun | undefined;
  readonly #byId = new ShortLivedMap<number, ActiveRun>();
  /** The runs that were asked to stop. */
  readonly #stopRequests = new Map<ActiveRun, StopRequest>();
  /** The runs past their deadline that wait for the child to answer a ping. */
  readonly #probes = new Map<ActiveRun, DeadlineProbe>();
  #nextId = 1;
  /** The last ping before the last end of a run; -1 before any has ended. */
  #lastEnd = -1;

  /**
   * `onOverdue` is called when a run's grace period is over and the run itself is the cause. `begun` is the last run
   * whose code has begun, where that is known.
   */
  constructor(
    child: {
      readonly channel: Channel;
      readonly heartbeat: Heartbeat;
      readonly begun: () => BegunRun | undefined;
    },
    clock: Clock,
    limits: ActiveRunLimits,
    onOverdue: (run: ActiveRun) => void,
  ) {
    this.#channel = child.channel;
    this.#heartbeat = child.heartbeat;
    this.#begun = child.begun;
    this.#clock = clock;
    this.#limits = limits;
    this.#onOverdue = onOverdue;
  }

  count(): number {
    return this.#byId.size;
  }

  get(id: number): ActiveRun | undefined {
    return this.#byId.get(id);
  }

  all(): ActiveRun[] {
    return this.#byId.values();
  }

  /** Whether a run that was asked to stop has not ended. */
  hasStopRequests(): boolean {
    return this.#stopRequests.size > 0;
  }

  /**
   * What is known of runs at the death of the child. One has outlived another if that has ended since the ping before
   * it: what ended earlier has left no code that blocked that ping, and is taken for harmless.
   */
  suspects(runs: readonly ActiveRun[]): Suspect[] {
    return runs.map((run) => ({
      run,
      mayHaveBegun: this.#mayHaveBegun(run),
      hasBegun: this.#hasBegun(run),
      hasOutlived: this.#lastEnd >= run.pingBefore,
    }));
  }

  #mayHaveBegun({ ping }: ActiveRun): boolean {
    return this.#heartbeat.hasAnswered(ping);
  }

  /** Whether pings show that its code has begun: that of its own line, or the one after it. */
  #hasBegun({ ping, pingBefore }: ActiveRun): boolean {
    return this.#heartbeat.hasAnswered(ping === pingBefore ? ping + 1 : ping);
  }

  /**
   * Sends a run to the child; with a ping if the child has no other run and no ping to answer: if it dies before it
   * reads the run, the only run is not charged.
   */
  start(accepted: AcceptedRun): ActiveRun {
    const pingBefore = this.#heartbeat.sent;
    const isIdle = this.#byId.size === 0 && this.#heartbeat.hasAnswered(pingBefore);
    const run: ActiveRun = {
      id: this.#nextId++,
      accepted,
      ping: isIdle ? this.#channel.pushPing() : pingBefore,
      pingBefore,
      startedAt: this.#clock.now(),
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
    this.#byId.set(run.id, run);
    if (this.#limits.hasDeadlines)
      run.timer = setTimeout(() => this.#expire(run), accepted.request.timeoutMs);
    this.#channel.push(runMessage(run));
    return run;
  }

  #expire(run: ActiveRun): void {
    run.timer = undefined;
    // Messages that the child has already sent are read before the timer counts.
    setImmediate(() => {
      if (!this.#byId.has(run.id) || run.stopRequest !== undefined) return;
      if (this.#isOnlyBegun(run) || run.extraMs >= run.accepted.request.timeoutMs) {
        this.#timeOut(run);
      } else this.#probe(run);
    });
  }

  /** Pings the child: another run may have blocked this run, or its start. */
  #probe(run: ActiveRun): void {
    const since = this.#clock.monotonic() - this.#heartbeat.silentMs();
    const hadBegun = this.#hasBegun(run) || this.#isMarkedBegun(run);
    this.#probes.set(run, { ping: this.#channel.ping(), since, hadBegun });
  }

  /** The child has answered. If it was silent too long, or had not begun the run, the run's deadline is extended. */
  #endProbe(run: ActiveRun, { since, hadBegun }: DeadlineProbe): void {
    this.#probes.delete(run);
    if (run.stopRequest !== undefined) return;
    const silence = this.#clock.monotonic() - since;
    if (silence < blockedMs && hadBegun) {
      this.#timeOut(run);
      return;
    }
    const { timeoutMs } = run.accepted.request;
    const ms = hadBegun ? Math.min(silence, timeoutMs) : timeoutMs;
    run.extraMs += ms;
    run.timer = setTimeout(() => this.#expire(run), ms);
  }

  #timeOut(run: ActiveRun): void {
    this.#requestStop(run, 'timeout', timeoutMessage(run.accepted.request));
  }

  /** Asks a run to stop. It ends with its next outcome, or with its grace period. */
  abort(run: ActiveRun, reason: string): void {
    if (!this.#byId.has(run.id) || run.stopRequest !== undefined) return;
    this.#requestStop(run, 'abort', reason);
  }

  /** Asks a run to end as waiting. One that was asked to stop ends as stopped. */
  suspend(run: ActiveRun): void {
    if (!this.#byId.has(run.id) || run.stopRequest !== undefined) return;
    run.isSuspending = true;
    this.#channel.push(`["suspend",${run.id},${run.asked}]`);
  }

  #requestStop(run: ActiveRun, cause: StopRequest['cause'], reason: string): void {
    clearTimeout(run.timer);
    const name = cause === 'timeout' ? 'TimeoutError' : 'AbortError';
    this.#channel.push(JSON.stringify(['abort', run.id, name, reason]));
    const stopRequest: StopRequest = {
      cause,
      ping: this.#channel.ping(),
      wasOnlyBegun: this.#isOnlyBegun(run),
      receivedAt: undefined,
      isOverdue: false,
    };
    run.stopRequest = stopRequest;
    this.#stopRequests.set(run, stopRequest);
    run.asking?.abort();
    this.#startGrace(run, stopRequest, this.#limits.graceMs);
  }

  #startGrace(run: ActiveRun, stopRequest: StopRequest, ms: number): void {
    run.timer = setTimeout(() => {
      run.timer = undefined;
      // Messages that the child has already sent are read first, as in `expire`.
      setImmediate(() => this.#endGrace(run, stopRequest));
    }, ms);
  }

  #endGrace(run: ActiveRun, stopRequest: StopRequest): void {
    if (!this.#stopRequests.has(run) || run.timer !== undefined) return;
    if (stopRequest.receivedAt === undefined) {
      // The child has not read the stop request. Only a run that was and is the only one can be the
      // cause. Otherwise the grace period begins when the child reads the request, and the watch kills
      // a child that never answers.
      if (!stopRequest.wasOnlyBegun || !this.#isOnlyBegun(run)) return;
    } else {
      const left = stopRequest.receivedAt + this.#limits.graceMs - this.#clock.monotonic();
      if (left > 1) {
        this.#startGrace(run, stopRequest, left);
        return;
      }
    }
    stopRequest.isOverdue = true;
    this.#onOverdue(run);
  }

  /** The code of this run has begun, and that of no other run. */
  #isOnlyBegun(run: ActiveRun): boolean {
    for (const other of this.#byId.values()) {
      if (other !== run && this.#mayHaveBegun(other)) return false;
    }
    return this.#hasBegun(run) || this.#isMarkedBegun(run);
  }

  #isMarkedBegun({ id }: ActiveRun): boolean {
    return (this.#begun()?.id ?? 0) >= id;
  }

  /** What the outcome that the child reported means for a run that may have been asked to stop. */
  #finalOutcome({ stopRequest, accepted }: ActiveRun, reported: RunOutcome): RunOutcome {
    if (stopRequest === undefined) return reported;
    const { cause, ping, wasOnlyBegun } = stopRequest;
    // If the child had not read the stop request, the run ended by itself and only its message was
    // late. The exception is a run that was the only one: its own code kept the child from reading.
    if (!this.#heartbeat.hasAnswered(ping)) {
      const hasBlocked = wasOnlyBegun && cause === 'timeout' && reported.kind !== 'waiting';
      if (!hasBlocked) return reported;
    }
    if (cause === 'timeout') return { kind: 'timeout', message: timeoutMessage(accepted.request) };
    // A run that completed despite the abort keeps its result: its effects have happened.
    return reported.kind === 'completed' ? reported : { kind: 'aborted' };
  }

  /** Settles a run with the outcome that the child reported. */
  finish(run: ActiveRun, outcome: RunOutcome): void {
    this.remove(run, this.#finalOutcome(run, outcome));
  }

  /** Settles a run with an outcome that the parent decided. */
  remove(run: ActiveRun, outcome: RunOutcome): void {
    if (!this.#byId.delete(run.id)) return;
    this.#lastEnd = this.#heartbeat.sent;
    clearTimeout(run.timer);
    this.#stopRequests.delete(run);
    this.#probes.delete(run);
    run.asking?.abort();
    run.accepted.settle(outcome);
  }

  /** The child has answered a ping. */
  onPong(): void {
    for (const [run, pending] of this.#probes) {
      if (this.#heartbeat.hasAnswered(pending.ping)) this.#endProbe(run, pending);
    }
    for (const [run, stopRequest] of this.#stopRequests) {
      if (stopRequest.receivedAt !== undefined || !this.#heartbeat.hasAnswered(stopRequest.ping)) {
        continue;
      }
      stopRequest.receivedAt = this.#clock.monotonic();
      if (run.timer === undefined) this.#startGrace(run, stopRequest, this.#limits.graceMs);
    }
  }
}

function runMessage({ id, accepted }: ActiveRun): string {
  const { skill, context, input, settings } = accepted.request;
  const {
    jobId,
    agentId,
    conversationId,
    organizationId,
    attempt,
    now,
    path = '',
    recordOf,
  } = context;
  const tuple: ContextTuple = [
    ...([jobId, agentId, conversationId, organizationId] as const),
    ...([attempt, now, path] as const),
    ...(recordOf === undefined ? ([] as const) : ([recordOf] as const)),
  ];
  // Between JSON tokens a line break is white space; within strings it is always escaped.
  const line = input.includes('\n') ? input.replaceAll('\n', ' ') : input;
  const end = settings === undefined ? ']' : `,${JSON.stringify(settings)}]`;
  return `["run",${id},${JSON.stringify(skill)},${JSON.stringify(tuple)},${line}${end}`;
}
