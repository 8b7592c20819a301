/**
 * The active runs of one executor: their deadlines, the stop request at a deadline or an abort, the
 * grace period after it, and the outcome of a run that ends in that period. Charges a deadline to a run
 * only when the child's event loop answered or no other run's code had begun, and extends the deadline
 * by the time for which another run blocked the loop. The executor decides whether the child must die.
 */
import { bind } from '../../kernel/bind.ts';
import type { Clock } from '../../kernel/clock.ts';
import { ShortLivedMap } from '../../kernel/short-lived-map.ts';
import {
  type AcceptedRun,
  type ActiveRun,
  type StopRequest,
  timeoutMessage,
} from './active-run.ts';
import type { Channel } from './channel.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { ContextTuple } from './protocol.ts';
import type { RunOutcome } from './run.ts';

/** A child that is silent for this many milliseconds counts as blocked. */
const blockedMs = 100;

export type ActiveRuns = ReturnType<typeof createActiveRuns>;

export interface ActiveRunsDeps {
  readonly channel: Channel;
  readonly heartbeat: Heartbeat;
  readonly clock: Clock;
  readonly limits: {
    readonly graceMs: number;
    /** False while a debugger may pause the runs: then no run reaches its deadline. */
    readonly hasDeadlines: boolean;
  };
  /** Called when a run's grace period is over and the run itself is the cause. */
  readonly onOverdue: (run: ActiveRun) => void;
}

/** A ping that was sent because a run is past its deadline. */
interface Probe {
  readonly ping: number;
  /** When the child's silence began, in the clock's monotonic milliseconds. */
  readonly since: number;
  readonly hadBegun: boolean;
}

interface State extends ActiveRunsDeps {
  readonly byId: ShortLivedMap<number, ActiveRun>;
  /** The runs that were asked to stop. */
  readonly stopRequests: Map<ActiveRun, StopRequest>;
  /** The runs past their deadline that wait for the child to answer a ping. */
  readonly probes: Map<ActiveRun, Probe>;
  nextId: number;
  /** The upcoming ping when the last run ended; 0 before any has. */
  lastEnd: number;
}

export function createActiveRuns(deps: ActiveRunsDeps) {
  const state: State = {
    ...deps,
    byId: new ShortLivedMap(),
    stopRequests: new Map(),
    probes: new Map(),
    nextId: 1,
    lastEnd: 0,
  };
  return bind(state, {
    count,
    start,
    get,
    all,
    abort,
    suspend,
    finish,
    remove,
    onPong,
    hasStopRequests,
    hasOutlived,
  });
}

function count({ byId }: State): number {
  return byId.size;
}

function get({ byId }: State, id: number): ActiveRun | undefined {
  return byId.get(id);
}

function all({ byId }: State): ActiveRun[] {
  return byId.values();
}

/** Whether a run that was asked to stop has not ended. */
function hasStopRequests({ stopRequests }: State): boolean {
  return stopRequests.size > 0;
}

/**
 * Whether another run has ended since the ping before this run's own. What ended earlier has left no code that
 * blocked that ping, and is taken for harmless.
 */
function hasOutlived({ lastEnd }: State, run: ActiveRun): boolean {
  return lastEnd >= run.ping;
}

/** Sends a run to the child. */
function start(state: State, accepted: AcceptedRun): ActiveRun {
  const run: ActiveRun = {
    id: state.nextId++,
    accepted,
    ping: state.heartbeat.upcoming,
    startedAt: state.clock.now(),
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
  state.byId.set(run.id, run);
  if (state.limits.hasDeadlines)
    run.timer = setTimeout(expire, accepted.request.timeoutMs, state, run);
  state.channel.push(runMessage(run));
  return run;
}

function runMessage({ id, accepted }: ActiveRun): string {
  const { skill, context, input, settings } = accepted.request;
  const { jobId, agentId, conversationId, organizationId, attempt, now, path = '' } = context;
  const tuple: ContextTuple = [
    ...([jobId, agentId, conversationId, organizationId] as const),
    ...([attempt, now, path] as const),
  ];
  // Between JSON tokens a line break is white space; within strings it is always escaped.
  const line = input.includes('\n') ? input.replaceAll('\n', ' ') : input;
  const end = settings === undefined ? ']' : `,${JSON.stringify(settings)}]`;
  return `["run",${id},${JSON.stringify(skill)},${JSON.stringify(tuple)},${line}${end}`;
}

function expire(state: State, run: ActiveRun): void {
  run.timer = undefined;
  // Messages that the child has already sent are read before the timer counts.
  setImmediate(() => {
    if (!state.byId.has(run.id) || run.stopRequest !== undefined) return;
    if (isOnlyBegun(state, run) || run.extraMs >= run.accepted.request.timeoutMs) {
      timeOut(state, run);
    } else probe(state, run);
  });
}

/** Pings the child: another run may have blocked this run, or its start. */
function probe({ probes, heartbeat, clock, channel }: State, run: ActiveRun): void {
  probes.set(run, {
    ping: heartbeat.upcoming,
    since: clock.monotonic() - heartbeat.silentMs(),
    hadBegun: heartbeat.hasAnswered(run.ping),
  });
  channel.flushAndPing();
}

/** The child has answered. If it was silent too long, the run's deadline is extended. */
function endProbe(state: State, run: ActiveRun, { since, hadBegun }: Probe): void {
  state.probes.delete(run);
  if (run.stopRequest !== undefined) return;
  const silence = state.clock.monotonic() - since;
  if (silence < blockedMs && hadBegun) {
    timeOut(state, run);
    return;
  }
  const { timeoutMs } = run.accepted.request;
  const ms = hadBegun ? Math.min(silence, timeoutMs) : timeoutMs;
  run.extraMs += ms;
  run.timer = setTimeout(expire, ms, state, run);
}

function timeOut(state: State, run: ActiveRun): void {
  requestStop(state, run, 'timeout', timeoutMessage(run.accepted.request));
}

/** Asks a run to stop. It ends with its next outcome, or with its grace period. */
function abort(state: State, run: ActiveRun, reason: string): void {
  if (!state.byId.has(run.id) || run.stopRequest !== undefined) return;
  requestStop(state, run, 'abort', reason);
}

/** Asks a run to end as waiting. One that was asked to stop ends as stopped. */
function suspend({ byId, channel }: State, run: ActiveRun): void {
  if (!byId.has(run.id) || run.stopRequest !== undefined) return;
  run.isSuspending = true;
  channel.push(`["suspend",${run.id},${run.asked}]`);
}

function requestStop(
  state: State,
  run: ActiveRun,
  cause: StopRequest['cause'],
  reason: string,
): void {
  clearTimeout(run.timer);
  const stopRequest: StopRequest = {
    cause,
    ping: state.heartbeat.upcoming,
    wasOnlyBegun: isOnlyBegun(state, run),
    receivedAt: undefined,
    isOverdue: false,
  };
  run.stopRequest = stopRequest;
  state.stopRequests.set(run, stopRequest);
  run.asking?.abort();
  const name = cause === 'timeout' ? 'TimeoutError' : 'AbortError';
  state.channel.push(JSON.stringify(['abort', run.id, name, reason]));
  state.channel.flushAndPing();
  startGrace(state, run, stopRequest, state.limits.graceMs);
}

function startGrace(state: State, run: ActiveRun, stopRequest: StopRequest, ms: number): void {
  run.timer = setTimeout(() => {
    run.timer = undefined;
    // Messages that the child has already sent are read first, as in `expire`.
    setImmediate(endGrace, state, run, stopRequest);
  }, ms);
}

function endGrace(state: State, run: ActiveRun, stopRequest: StopRequest): void {
  if (!state.stopRequests.has(run) || run.timer !== undefined) return;
  if (stopRequest.receivedAt === undefined) {
    // The child has not read the stop request. Only a run that was and is the only one can be the
    // cause. Otherwise the grace period begins when the child reads the request, and the watch kills
    // a child that never answers.
    if (!stopRequest.wasOnlyBegun || !isOnlyBegun(state, run)) return;
  } else {
    const left = stopRequest.receivedAt + state.limits.graceMs - state.clock.monotonic();
    if (left > 1) {
      startGrace(state, run, stopRequest, left);
      return;
    }
  }
  stopRequest.isOverdue = true;
  state.onOverdue(run);
}

/** The code of this run may have begun, and that of no other run. */
function isOnlyBegun({ byId, heartbeat }: State, run: ActiveRun): boolean {
  if (!heartbeat.hasAnswered(run.ping)) return false;
  for (const other of byId.values()) {
    if (other !== run && heartbeat.hasAnswered(other.ping)) return false;
  }
  return true;
}

/** What the outcome that the child reported means for a run that may have been asked to stop. */
function finalOutcome(
  { heartbeat }: State,
  { stopRequest, accepted }: ActiveRun,
  reported: RunOutcome,
): RunOutcome {
  if (stopRequest === undefined) return reported;
  const { cause, ping, wasOnlyBegun } = stopRequest;
  // If the child had not read the stop request, the run ended by itself and only its message was
  // late. The exception is a run that was the only one: its own code kept the child from reading.
  if (!heartbeat.hasAnswered(ping)) {
    const hasBlocked = wasOnlyBegun && cause === 'timeout' && reported.kind !== 'waiting';
    if (!hasBlocked) return reported;
  }
  if (cause === 'timeout') return { kind: 'timeout', message: timeoutMessage(accepted.request) };
  // A run that completed despite the abort keeps its result: its effects have happened.
  return reported.kind === 'completed' ? reported : { kind: 'aborted' };
}

/** Settles a run with the outcome that the child reported. */
function finish(state: State, run: ActiveRun, outcome: RunOutcome): void {
  remove(state, run, finalOutcome(state, run, outcome));
}

/** Settles a run with an outcome that the parent decided. */
function remove(state: State, run: ActiveRun, outcome: RunOutcome): void {
  const { byId, stopRequests, probes, heartbeat } = state;
  if (!byId.delete(run.id)) return;
  state.lastEnd = heartbeat.upcoming;
  clearTimeout(run.timer);
  stopRequests.delete(run);
  probes.delete(run);
  run.asking?.abort();
  run.accepted.settle(outcome);
}

/** The child has answered a ping. */
function onPong(state: State): void {
  const { probes, stopRequests, heartbeat, clock } = state;
  for (const [run, pending] of probes) {
    if (heartbeat.hasAnswered(pending.ping)) endProbe(state, run, pending);
  }
  for (const [run, stopRequest] of stopRequests) {
    if (stopRequest.receivedAt !== undefined || !heartbeat.hasAnswered(stopRequest.ping + 1)) {
      continue;
    }
    stopRequest.receivedAt = clock.monotonic();
    if (run.timer === undefined) startGrace(state, run, stopRequest, state.limits.graceMs);
  }
}
