/**
 * The life of one child process until it ends: it starts, takes runs, answers pings and is watched.
 * Promises that no message of the child can do more than end the child. Knows no other executor and
 * chooses no runs. `executor-end.ts` is how it ends.
 */
import { canReadProc } from '../../kernel/proc.ts';
import type { LoadPlan } from '../skills/sources/load-plan.ts';
import type { AcceptedRun } from './active-run.ts';
import { createActiveRuns } from './active-runs.ts';
import { openChannel } from './channel.ts';
import { logStrayMessage, takeRunMessage } from './child-messages.ts';
import { spawnChild } from './child-process.ts';
import { createByteBudget } from './console-budget.ts';
import { tapConsole } from './console-tap.ts';
import {
  die,
  drain,
  type ExecutorDeps,
  type ExecutorState,
  endIfDrained,
  onExit,
  onOverdue,
} from './executor-end.ts';
import { createHeartbeat, type Heartbeat } from './heartbeat.ts';
import { createRate, frameBytesMax, straysPerSecond } from './limits.ts';
import { createLineReader } from './lines.ts';
import { createLoading } from './loading.ts';
import { memoryLevel, memoryLimitMb } from './memory-limit.ts';
import { readMark } from './now-running.ts';
import { type ChildMessage, readChildLine } from './protocol.ts';
import { createKnownSecrets, formsOf } from './redaction.ts';
import type { RunControls } from './run.ts';
import type { SnapshotFile } from './snapshot-file.ts';

/** An executor that is silent for this many milliseconds is doubtful. */
const doubtMs = 500;

export interface Executor {
  readonly pid: number | undefined;
  readonly isReady: boolean;
  readonly inFlight: number;
  /** No run was ever given to it. */
  readonly isFresh: boolean;
  /** It may be killed soon, or does not answer: the pool prefers other executors. */
  isDoubtful(): boolean;
  /** Milliseconds for which its event loop has not answered; 0 when nothing is asked. */
  silentMs(): number;
  /** Sends it a run; only while it is ready. */
  run(accepted: AcceptedRun): RunControls;
  /** Asks all its runs to stop. */
  abortAll(reason: string): void;
  /** Checks its memory and its event loop; the pool calls this until it returns false. */
  watch(wasAbsent: boolean): boolean;
  /** Kills it; all its runs are aborted. */
  end(kind: 'retired' | 'stopped'): void;
}

export function startExecutor(deps: ExecutorDeps, snapshot: SnapshotFile): Executor {
  const state = spawnExecutor(deps, snapshot);
  const { child, activeRuns, heartbeat } = state;
  readMessages(state);
  // A write to a child that has died fails; its exit event reports the death.
  child.socket.on('error', () => {});
  child.process.once('error', ({ message }) =>
    onExit(state, `it could not be started: ${message}`),
  );
  child.process.once('exit', (code, signal) => onExit(state, signal ?? `exit code ${code}`));
  return {
    pid: child.pid,
    get isReady() {
      return state.life.phase === 'ready';
    },
    get inFlight() {
      return activeRuns.count();
    },
    get isFresh() {
      return state.activity.isFresh;
    },
    silentMs: heartbeat.silentMs,
    isDoubtful: () => activeRuns.hasStopRequests() || isSilent(heartbeat),
    run: (accepted) => run(state, accepted),
    abortAll(reason) {
      for (const one of activeRuns.all()) activeRuns.abort(one, reason);
    },
    watch: (wasAbsent) => watch(state, wasAbsent),
    end: (kind) => die(state, { kind }),
  };
}

/** Asked for each run, so that the mark is looked at only where it decides. */
function isSilent(heartbeat: Heartbeat): boolean {
  return !heartbeat.hasAnsweredWithin(doubtMs) && heartbeat.silentMs() > doubtMs;
}

function spawnExecutor(deps: ExecutorDeps, snapshot: SnapshotFile): ExecutorState {
  const { clock, log, memoryMb, env, skillsDirs, graceMs, loadMs, plan } = deps.settings;
  const { isFirst, inspectPort } = deps.start;
  const isPrepared = isFirst && plan !== null;
  const setAside = snapshot.filesSetAside();
  const child = spawnChild({
    memoryMb,
    env,
    snapshotFd: snapshot.fd,
    // The port is still that of the set that a prepared child replaces.
    inspectPort: isPrepared ? null : inspectPort,
    settings: {
      skillsDirs,
      isFirst,
      isPrepared,
      inspectPort: isPrepared ? inspectPort : null,
      setAside,
      reportsMemory: !canReadProc,
    },
  });
  const { pid } = child;
  const heartbeat = createHeartbeat(() => clock.monotonic(), child.lineMark.last);
  const channel = openChannel(child.socket, heartbeat);
  const secrets = createKnownSecrets();
  const state: ExecutorState = {
    ...deps,
    child,
    channel,
    heartbeat,
    loading: createLoading({
      load: { isFirst, hasPlan: isPrepared, loadMs: inspectPort === null ? loadMs : null },
      pid,
      clock,
      log,
      onLate: () => die(state, { kind: 'unready' }),
    }),
    activeRuns: createActiveRuns({
      channel,
      heartbeat,
      clock,
      limits: { graceMs, hasDeadlines: inspectPort === null },
      onOverdue: (overdue) => onOverdue(state, overdue),
    }),
    console: {
      tap: tapConsole(child.process, pid, log, secrets),
      secrets,
      printed: createByteBudget(() => {}),
      mayLogStray: createRate(straysPerSecond),
    },
    activity: { isFresh: true, wasBusy: false, reportedBytes: 0 },
    life: {
      phase: 'starting',
      death: undefined,
      exitCause: { kind: 'retired' },
      drainTimer: undefined,
      abandoned: [],
      beginning: undefined,
    },
  };
  if (isPrepared) void loadAfter(state, plan);
  return state;
}

/** Tells a prepared child to load once there is a plan; the time of its load begins then. */
async function loadAfter(state: ExecutorState, planned: Promise<LoadPlan>): Promise<void> {
  state.loading.stop();
  const plan = await planned;
  if (state.life.phase !== 'starting') return;
  state.loading.restart();
  state.channel.push(JSON.stringify(['load', plan]));
  state.channel.flushAndPing();
}

/** Takes the child's messages. After one garbled message, all later ones are ignored. */
function readMessages(state: ExecutorState): void {
  const read = createLineReader({
    maxBytes: frameBytesMax,
    onLine: (line) => takeLine(state, line),
    onOverflow: () => garbled(state, 'a line was too long'),
  });
  state.child.socket.on('data', (chunk: Buffer) => {
    if (!isGarbled(state)) read(chunk);
  });
}

function takeLine(state: ExecutorState, line: string): void {
  if (isGarbled(state)) return;
  const messages = readChildLine(line);
  if (messages === undefined) garbled(state, 'a line that is no message');
  else {
    for (const message of messages) if (!isGarbled(state)) take(state, message);
  }
  endIfDrained(state);
}

function take(state: ExecutorState, message: ChildMessage): void {
  const { heartbeat, loading, activeRuns } = state;
  switch (message[0]) {
    case 'pong':
      state.activity.reportedBytes = message[2];
      if (heartbeat.answer(message[1])) activeRuns.onPong();
      else garbled(state, 'an answer without a request');
      break;
    case 'alive':
      heartbeat.showLife();
      break;
    case 'stray':
    case 'dropped':
      logStrayMessage(state, message);
      break;
    case 'loading':
    case 'skill':
    case 'files':
    case 'left-out':
    case 'failing':
    case 'ready':
    case 'refused':
    case 'unloaded':
      onStartMessage(state, state.life.phase === 'starting' ? loading.take(message) : 'garbled');
      break;
    default: {
      const fault = takeRunMessage(state, message);
      if (fault !== undefined) garbled(state, fault);
    }
  }
}

function onStartMessage(
  state: ExecutorState,
  step: ReturnType<ExecutorState['loading']['take']>,
): void {
  if (step === 'garbled') garbled(state, 'an invalid message of a start');
  else if (step === 'refused') die(state, { kind: 'unready' });
  else if (step === 'ready') {
    state.life.phase = 'ready';
    const { child, start, settings } = state;
    if (start.inspectPort !== null) {
      const facts = { executor: child.pid, port: start.inspectPort };
      settings.log.info(facts, 'an executor can be debugged');
    }
    state.events.onReady(state.loading.found());
  }
}

function garbled(state: ExecutorState, how: string): void {
  die(state, { kind: 'garbled', how });
}

function isGarbled({ life }: ExecutorState): boolean {
  return life.death?.kind === 'garbled';
}

function run(state: ExecutorState, accepted: AcceptedRun): RunControls {
  const { activeRuns, activity } = state;
  activity.isFresh = false;
  activity.wasBusy = true;
  const { settings } = accepted.request;
  if (settings !== undefined) state.console.secrets.add(formsOf(settings.secrets));
  const started = activeRuns.start(accepted);
  return {
    abort: (reason) => activeRuns.abort(started, reason),
    suspend: () => activeRuns.suspend(started),
  };
}

function watch(state: ExecutorState, wasAbsent: boolean): boolean {
  const { life, activity, activeRuns, heartbeat, settings, start, child } = state;
  if (life.phase !== 'ready' && life.phase !== 'draining') return false;
  if (activeRuns.count() === 0 && !activity.wasBusy && heartbeat.silentMs() === 0) return false;
  if (wasAbsent) heartbeat.forgive();
  watchMemory(state);
  if (heartbeat.stalledMs() > settings.stallMs && start.inspectPort === null) {
    life.beginning = readMark(child.pid);
    die(state, { kind: 'stalled', ms: settings.stallMs });
  } else if (heartbeat.silentMs() === 0) {
    // One more ping after the last run: code that it left behind may block the loop.
    activity.wasBusy = activeRuns.count() > 0;
    state.channel.flushAndPing();
  }
  return true;
}

function watchMemory(state: ExecutorState): void {
  const { settings, child, activity } = state;
  const { reportedBytes } = activity;
  const limitMb = memoryLimitMb(settings.memoryMb);
  const memory = memoryLevel({ pid: child.pid, reportedBytes }, limitMb);
  if (memory === 'too much') die(state, { kind: 'memory', mb: limitMb });
  else if (memory === 'much' && state.life.phase === 'ready' && state.events.mayDrain()) {
    const facts = { executor: child.pid, limitMb };
    settings.log.info(facts, 'an executor holds much memory and is replaced');
    drain(state, { kind: 'retired' });
    endIfDrained(state);
  }
}
