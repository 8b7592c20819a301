/**
 * The runs in flight of one executor: their deadlines, what they are told at them, the grace that
 * follows, and what an ending means after that. Charges a deadline to a run only when the child's
 * event loop answered or nobody else's code had begun, and gives back what others took of its time;
 * whether the executor has to die for it is the executor's decision.
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

/** Milliseconds without an answer after which a child counts as held up. */
const HELD_UP_MS = 100;

/** The way to the child. */
export interface Channel {
  /** Puts a message, as JSON text, into the next line. */
  push(message: string): void;
  /** Writes what is gathered at once, and a line with nothing but a ping after it. */
  flushAndPing(): void;
}

export interface ActiveRuns {
  readonly size: number;
  /** Sends a run to the child. */
  start(accepted: AcceptedRun): ActiveRun;
  get(id: number): ActiveRun | undefined;
  all(): ActiveRun[];
  /** Asks a run to stop; what it says next is its end, or the grace is. */
  abort(run: ActiveRun, reason: string): void;
  /** The run has ended by itself, as the child says. */
  finish(run: ActiveRun, outcome: RunOutcome): void;
  /** Settles a run whatever the child says of it. */
  remove(run: ActiveRun, outcome: RunOutcome): void;
  /** The child has answered a ping. */
  onPong(): void;
  /** Some run is past its deadline, or was aborted, and has not ended. */
  hasStopRequests(): boolean;
}

interface Probe {
  readonly ping: number;
  /** Since when the child has been silent, as the clock tells it. */
  readonly since: number;
  readonly hadBegun: boolean;
}

export function createActiveRuns(parts: {
  channel: Channel;
  heartbeat: Heartbeat;
  clock: Clock;
  graceMs: number;
  /** False while a debugger may hold the runs: then none is ever told that its time is up. */
  hasDeadlines: boolean;
  /** The grace is over and the run is to blame. */
  onOverdue: (run: ActiveRun) => void;
}): ActiveRuns {
  const { channel, heartbeat, clock, graceMs, hasDeadlines, onOverdue } = parts;
  const activeRuns = new Map<number, ActiveRun>();
  /** Those who were told to end. */
  const stopRequests = new Map<ActiveRun, StopRequest>();
  /** Those whose deadline has come, and who wait to hear whether the child answers. */
  const probes = new Map<ActiveRun, Probe>();
  let nextId = 1;

  function expire(run: ActiveRun): void {
    run.timer = undefined;
    // What the child has said meanwhile is read before the timer's word counts.
    setImmediate(() => {
      if (!activeRuns.has(run.id) || run.stopRequest !== undefined) return;
      if (isOnlyBegun(run) || run.extraMs >= run.accepted.request.timeoutMs) endTime(run);
      else probe(run);
    });
  }

  /** Asks whether the child answers: a neighbour may have held up the run, or its begin. */
  function probe(run: ActiveRun): void {
    probes.set(run, {
      ping: heartbeat.upcoming,
      since: clock.monotonic() - heartbeat.silentMs(),
      hadBegun: heartbeat.hasAnswered(run.ping),
    });
    channel.flushAndPing();
  }

  /** The child has answered: in good time, or what others took of the run's is given back. */
  function endProbe(run: ActiveRun, { since, hadBegun }: Probe): void {
    probes.delete(run);
    if (run.stopRequest !== undefined) return;
    const silence = clock.monotonic() - since;
    if (silence < HELD_UP_MS && hadBegun) {
      endTime(run);
      return;
    }
    const { timeoutMs } = run.accepted.request;
    const ms = hadBegun ? Math.min(silence, timeoutMs) : timeoutMs;
    run.extraMs += ms;
    run.timer = setTimeout(expire, ms, run);
  }

  function endTime(run: ActiveRun): void {
    tell(run, 'timeout', 'TimeoutError', timeoutMessage(run.accepted.request));
  }

  function tell(run: ActiveRun, cause: StopRequest['cause'], name: string, reason: string): void {
    clearTimeout(run.timer);
    const stopRequest: StopRequest = {
      cause,
      ping: heartbeat.upcoming,
      isOnly: isOnlyBegun(run),
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
      // As above.
      setImmediate(endGrace, run, stopRequest);
    }, ms);
  }

  function endGrace(run: ActiveRun, stopRequest: StopRequest): void {
    if (!stopRequests.has(run) || run.timer !== undefined) return;
    if (stopRequest.receivedAt === undefined) {
      // It has not been told yet. Whose doing that is can only be said of one that was and is on its
      // own; otherwise the grace begins when it is told, and the watch ends a child that never answers.
      if (!stopRequest.isOnly || !isOnlyBegun(run)) return;
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

  /** Its code may have begun, and nobody else's. */
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
      tell(run, 'abort', 'AbortError', reason);
    },

    finish(run, outcome) {
      const { stopRequest } = run;
      if (stopRequest === undefined) {
        remove(run, outcome);
        return;
      }
      // Said before it was told: it ended of itself, and only the way to us took longer. But one
      // that kept the child from listening, all alone, was late by its own doing.
      const hasReceived = heartbeat.hasAnswered(stopRequest.ping);
      if (!hasReceived && !(stopRequest.isOnly && stopRequest.cause === 'timeout'))
        remove(run, outcome);
      // What it did is done, whether or not somebody still wanted it.
      else if (stopRequest.cause === 'abort' && outcome.kind === 'completed') remove(run, outcome);
      else if (stopRequest.cause === 'abort') remove(run, { kind: 'aborted' });
      else remove(run, { kind: 'timeout', message: timeoutMessage(run.accepted.request) });
    },

    remove,

    onPong() {
      for (const [run, probing] of probes) {
        if (heartbeat.hasAnswered(probing.ping)) endProbe(run, probing);
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
  // Between the tokens of JSON a line break is only space; within strings it is always escaped.
  const line = input.includes('\n') ? input.replaceAll('\n', ' ') : input;
  return `["run",${id},${JSON.stringify(skill)},${JSON.stringify(tuple)},${line}]`;
}
