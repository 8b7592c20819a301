/**
 * The active runs of one executor: their deadlines, the stop request at a deadline or an abort, the
 * grace period after it, and the outcome of a run that ends in that period. Charges a deadline to a run
 * only when the child's event loop answered or no other run's code had begun, and extends the deadline
 * by the time for which another run blocked the loop. The executor decides whether the child must die.
 */
import type { Clock } from '../kernel/clock.ts';
import {
  type AcceptedRun,
  type ActiveRun,
  type StopRequest,
  timeoutMessage,
} from './active-run.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { RunOutcome } from './run.ts';

/** A child that is silent for this many milliseconds counts as blocked. */
const BLOCKED_MS = 100;

/** The way to the child. */
export interface Channel {
  /** Puts a message, as JSON text, into the next line. */
  push(message: string): void;
  /** Writes the gathered messages at once, and then a line with only a ping. */
  flushAndPing(): void;
}

export interface ActiveRuns {
  readonly size: number;
  /** Sends a run to the child. */
  start(accepted: AcceptedRun): ActiveRun;
  get(id: number): ActiveRun | undefined;
  all(): ActiveRun[];
  /** Asks a run to stop. It ends with its next outcome, or with its grace period. */
  abort(run: ActiveRun, reason: string): void;
  /** Settles a run with the outcome that the child reported. */
  finish(run: ActiveRun, outcome: RunOutcome): void;
  /** Settles a run with an outcome that the parent decided. */
  remove(run: ActiveRun, outcome: RunOutcome): void;
  /** The child has answered a ping. */
  onPong(): void;
  /** True while a run that was asked to stop has not ended. */
  hasStopRequests(): boolean;
}

interface Probe {
  readonly ping: number;
  /** When the child's silence began, in the clock's monotonic milliseconds. */
  readonly since: number;
  readonly hadBegun: boolean;
}

export function createActiveRuns(parts: {
  channel: Channel;
  heartbeat: Heartbeat;
  clock: Clock;
  graceMs: number;
  /** False while a debugger may pause the runs: then no run reaches its deadline. */
  hasDeadlines: boolean;
  /** Called when a run's grace period is over and the run itself is the cause. */
  onOverdue: (run: ActiveRun) => void;
}): ActiveRuns {
  const { channel, heartbeat, clock, graceMs, hasDeadlines, onOverdue } = parts;
  const activeRuns = new Map<number, ActiveRun>();
  /** The runs that were asked to stop. */
  const stopRequests = new Map<ActiveRun, StopRequest>();
  /** The runs past their deadline that wait for the child to answer a ping. */
  const probes = new Map<ActiveRun, Probe>();
  let nextId = 1;

  function expire(run: ActiveRun): void {
    run.timer = undefined;
    // Messages that the child has already sent are read before the timer counts.
    setImmediate(() => {
      if (!activeRuns.has(run.id) || run.stopRequest !== undefined) return;
      if (isOnlyBegun(run) || run.extraMs >= run.accepted.request.timeoutMs) timeOut(run);
      else probe(run);
    });
  }

  /** Pings the child: another run may have blocked this run, or its start. */
  function probe(run: ActiveRun): void {
    probes.set(run, {
      ping: heartbeat.upcoming,
      since: clock.monotonic() - heartbeat.silentMs(),
      hadBegun: heartbeat.hasAnswered(run.ping),
    });
    channel.flushAndPing();
  }

  /** The child has answered. If it was silent too long, the run's deadline is extended. */
  function endProbe(run: ActiveRun, { since, hadBegun }: Probe): void {
    probes.delete(run);
    if (run.stopRequest !== undefined) return;
    const silence = clock.monotonic() - since;
    if (silence < BLOCKED_MS && hadBegun) {
      timeOut(run);
      return;
    }
    const { timeoutMs } = run.accepted.request;
    const ms = hadBegun ? Math.min(silence, timeoutMs) : timeoutMs;
    run.extraMs += ms;
    run.timer = setTimeout(expire, ms, run);
  }

  function timeOut(run: ActiveRun): void {
    requestStop(run, 'timeout', 'TimeoutError', timeoutMessage(run.accepted.request));
  }

  function requestStop(
    run: ActiveRun,
    cause: StopRequest['cause'],
    name: string,
    reason: string,
  ): void {
    clearTimeout(run.timer);
    const stopRequest: StopRequest = {
      cause,
      ping: heartbeat.upcoming,
      wasOnlyBegun: isOnlyBegun(run),
      receivedAt: undefined,
      isOverdue: false,
    };
    run.stopRequest = stopRequest;
    stopRequests.set(run, stopRequest);
    run.asking?.abort();
    channel.push(JSON.stringify(['abort', run.id, name, reason]));
    channel.flushAndPing();
    startGrace(run, stopRequest, graceMs);
  }

  function startGrace(run: ActiveRun, stopRequest: StopRequest, ms: number): void {
    run.timer = setTimeout(() => {
      run.timer = undefined;
      // Messages that the child has already sent are read first, as in `expire`.
      setImmediate(endGrace, run, stopRequest);
    }, ms);
  }

  function endGrace(run: ActiveRun, stopRequest: StopRequest): void {
    if (!stopRequests.has(run) || run.timer !== undefined) return;
    if (stopRequest.receivedAt === undefined) {
      // The child has not read the stop request. Only a run that was and is the only one can be the
      // cause. Otherwise the grace period begins when the child reads the request, and the watch kills
      // a child that never answers.
      if (!stopRequest.wasOnlyBegun || !isOnlyBegun(run)) return;
    } else {
      const left = stopRequest.receivedAt + graceMs - clock.monotonic();
      if (left > 1) {
        startGrace(run, stopRequest, left);
        return;
      }
    }
    stopRequest.isOverdue = true;
    onOverdue(run);
  }

  /** The code of this run may have begun, and that of no other run. */
  function isOnlyBegun(run: ActiveRun): boolean {
    if (!heartbeat.hasAnswered(run.ping)) return false;
    for (const other of activeRuns.values()) {
      if (other !== run && heartbeat.hasAnswered(other.ping)) return false;
    }
    return true;
  }

  function remove(run: ActiveRun, outcome: RunOutcome): void {
    if (!activeRuns.delete(run.id)) return;
    clearTimeout(run.timer);
    stopRequests.delete(run);
    probes.delete(run);
    run.asking?.abort();
    run.accepted.settle(outcome);
  }

  return {
    get size() {
      return activeRuns.size;
    },

    start(accepted) {
      const { request } = accepted;
      const run: ActiveRun = {
        id: nextId++,
        accepted,
        ping: heartbeat.upcoming,
        startedAt: clock.now(),
        stopRequest: undefined,
        timer: undefined,
        extraMs: 0,
        logLines: 0,
        messages: 0,
        asks: 0,
        asking: undefined,
      };
      activeRuns.set(run.id, run);
      if (hasDeadlines) run.timer = setTimeout(expire, request.timeoutMs, run);
      channel.push(runMessage(run));
      return run;
    },

    get: (id) => activeRuns.get(id),
    all: () => [...activeRuns.values()],

    abort(run, reason) {
      if (!activeRuns.has(run.id) || run.stopRequest !== undefined) return;
      requestStop(run, 'abort', 'AbortError', reason);
    },

    finish(run, outcome) {
      const { stopRequest } = run;
      if (stopRequest === undefined) {
        remove(run, outcome);
        return;
      }
      // If the child had not read the stop request, the run ended by itself and only its message was
      // late. The exception is a run that was the only one: its own code kept the child from reading.
      const hasReceived = heartbeat.hasAnswered(stopRequest.ping);
      if (!hasReceived && !(stopRequest.wasOnlyBegun && stopRequest.cause === 'timeout'))
        remove(run, outcome);
      // A run that completed despite the abort keeps its result: its effects have happened.
      else if (stopRequest.cause === 'abort' && outcome.kind === 'completed') remove(run, outcome);
      else if (stopRequest.cause === 'abort') remove(run, { kind: 'aborted' });
      else remove(run, { kind: 'timeout', message: timeoutMessage(run.accepted.request) });
    },

    remove,

    onPong() {
      for (const [run, pending] of probes) {
        if (heartbeat.hasAnswered(pending.ping)) endProbe(run, pending);
      }
      for (const [run, stopRequest] of stopRequests) {
        if (stopRequest.receivedAt !== undefined || !heartbeat.hasAnswered(stopRequest.ping + 1))
          continue;
        stopRequest.receivedAt = clock.monotonic();
        if (run.timer === undefined) startGrace(run, stopRequest, graceMs);
      }
    },

    hasStopRequests: () => stopRequests.size > 0,
  };
}

function runMessage({ id, accepted }: ActiveRun): string {
  const { skill, context, input } = accepted.request;
  const tuple = [
    context.jobId,
    context.agentId,
    context.conversationId,
    context.organizationId,
    context.attempt,
  ];
  // Between JSON tokens a line break is white space; within strings it is always escaped.
  const line = input.includes('\n') ? input.replaceAll('\n', ' ') : input;
  return `["run",${id},${JSON.stringify(skill)},${JSON.stringify(tuple)},${line}]`;
}
