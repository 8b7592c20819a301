/**
 * How an executor ends: it drains, is killed or exits by itself, and is gone once its socket has closed.
 * Promises that every run that was given to the child is settled exactly once, at the latest when the
 * child is gone.
 */
import type { ActiveRun } from './active-run.ts';
import type { ActiveRuns } from './active-runs.ts';
import type { Channel } from './channel.ts';
import { type Child, explainExit, killGroup } from './child-process.ts';
import type { PooledChild } from './child-starts.ts';
import type { Budget } from './console-budget.ts';
import type { ConsoleTap } from './console-tap.ts';
import { attributeDeath, type Death, isFault } from './death-attribution.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { Loading } from './loading.ts';
import type { PoolSettings } from './pool-options.ts';
import type { KnownSecrets } from './redaction.ts';

/** Milliseconds to wait for the messages of a child that has exited. */
const socketDrainMs = 500;

/** The state of one executor. */
export interface ExecutorState {
  readonly settings: PoolSettings;
  readonly pooled: PooledChild;
  readonly child: Child;
  readonly channel: Channel;
  readonly heartbeat: Heartbeat;
  readonly loading: Loading;
  readonly activeRuns: ActiveRuns;
  readonly console: ChildConsole;
  readonly activity: Activity;
  readonly life: Life;
}

/** What the child prints and reports outside of runs, within bounds. */
interface ChildConsole {
  readonly tap: ConsoleTap;
  /** Of its runs: what it prints outside of them must not show any. */
  readonly secrets: KnownSecrets;
  /** Bounds what its runs print. */
  readonly printed: Budget;
  /** Bounds the logged messages that belong to no run. */
  readonly strays: Budget;
}

/** What the watch needs to know. */
interface Activity {
  wasBusy: boolean;
  /** The memory that the child reported last. */
  reportedBytes: number;
}

/** How far it is on the way from its start to its end, and why it ends. */
interface Life {
  phase: 'starting' | 'ready' | 'draining' | 'dying' | 'gone';
  death: Death | undefined;
  /** Why it is ended when its last run has ended. */
  exitCause: Death;
  drainTimer: NodeJS.Timeout | undefined;
  /** The settled runs whose code may still execute. */
  readonly abandoned: ActiveRun[];
}

/** A run's grace period is over: the executor drains if it answers, and is killed if not. */
export function onOverdue(state: ExecutorState, run: ActiveRun): void {
  const { settings, activeRuns, child, life } = state;
  const mayStay =
    run.stopRequest?.receivedAt !== undefined &&
    activeRuns.count() > 1 &&
    (life.phase === 'draining' || state.pooled.mayDrain());
  if (!mayStay) {
    die(state, { kind: 'overdue' });
    return;
  }
  // Its event loop answers, so the other runs may finish. The overdue run is settled now; its code
  // goes on until the child is killed.
  const { skill } = run.accepted.request;
  settings.log.warn({ executor: child.pid, skill }, 'a run did not stop; its executor is replaced');
  const [outcome] = attributeDeath({ kind: 'overdue' }, activeRuns.suspects([run]));
  if (outcome !== undefined) activeRuns.remove(run, outcome);
  life.abandoned.push(run);
  drain(state, { kind: 'overdue' });
  life.drainTimer ??= setTimeout(() => die(state, life.exitCause), settings.drainMs);
}

/** Takes no more runs, and ends when the last run has ended. */
export function drain({ life, pooled }: ExecutorState, cause: Death): void {
  life.exitCause = cause;
  if (life.phase !== 'ready') return;
  life.phase = 'draining';
  pooled.onUnavailable();
}

/** Ends a draining executor whose last run has ended. */
export function endIfDrained(state: ExecutorState): void {
  const { life, activeRuns } = state;
  if (life.phase === 'draining' && activeRuns.count() === 0) die(state, life.exitCause);
}

/** Kills the child, unless it is dying already. */
export function die({ life, child, pooled }: ExecutorState, cause: Death): void {
  if (life.phase === 'dying' || life.phase === 'gone') return;
  const wasReady = life.phase === 'ready';
  life.phase = 'dying';
  life.death = cause;
  killGroup(child.pid);
  if (wasReady) pooled.onUnavailable();
}

/** The child has exited, or could not be started; `how` describes it. */
export function onExit(state: ExecutorState, how: string): void {
  const { pid, socket } = state.child;
  die(state, { kind: 'ended', how });
  // Processes that it started itself may still run.
  killGroup(pid);
  if (socket.closed) {
    finalize(state);
    return;
  }
  // Results that it sent before it exited still count.
  const timer = setTimeout(finalize, socketDrainMs, state);
  socket.once('close', () => {
    clearTimeout(timer);
    finalize(state);
  });
}

function finalize(state: ExecutorState): void {
  const { child, loading, activeRuns, life } = state;
  const { tap } = state.console;
  if (life.phase === 'gone' || life.death === undefined) return;
  life.phase = 'gone';
  loading.stop();
  clearTimeout(life.drainTimer);
  const death = explained(life.death, tap.tail());
  child.socket.destroy();
  tap.close();
  const left = activeRuns.all();
  // The code of abandoned runs still ran, so one of them may be the cause.
  const outcomes = attributeDeath(death, activeRuns.suspects([...left, ...life.abandoned]));
  // When the first child cannot start, the program ends and reports the reason.
  const how = death.kind === 'ended' ? death.how : death.kind;
  const startFailure = loading.failure(how, tap.tail());
  const isFirstStart = state.pooled.isFirst && startFailure !== undefined;
  if (isFault(death) && !isFirstStart) {
    const facts = { executor: child.pid, death, runs: left.length };
    state.settings.log.warn(facts, 'an executor died');
  }
  for (const [i, outcome] of outcomes.entries()) {
    const run = left[i];
    if (run !== undefined) activeRuns.remove(run, outcome);
  }
  state.pooled.onGone(death, startFailure);
}

function explained(death: Death, stderrTail: string): Death {
  return death.kind === 'ended' ? { ...death, how: explainExit(death.how, stderrTail) } : death;
}
