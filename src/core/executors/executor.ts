/**
 * The life of one child process until it ends: it starts, takes runs, answers pings and is watched.
 * Promises that no message of the child can do more than end the child. Knows no other executor and
 * chooses no runs. `executor-end.ts` is how it ends.
 */
import type { ActiveRun } from './active-run.ts';
import { logStrayMessage, takeRunMessage } from './child-messages.ts';
import type { PooledChild } from './child-starts.ts';
import { die, drain, type ExecutorState, endIfDrained, onExit } from './executor-end.ts';
import { startChild } from './executor-start.ts';
import { frameBytesMax } from './limits.ts';
import { LineReader } from './lines.ts';
import { memoryLevel, memoryLimitMb } from './memory-limit.ts';
import { readMark } from './now-running.ts';
import type { PoolSettings } from './pool-options.ts';
import type { PoolRun } from './pool-run.ts';
import { type ChildMessage, readChildLine } from './protocol.ts';
import { formsOf } from './redaction.ts';
import type { SnapshotFile } from './snapshot-file.ts';

/** An executor that is silent for this many milliseconds is doubtful. */
const doubtMs = 500;

export class Executor {
  readonly #state: ExecutorState;

  /** Starts the child. Throws where no process can be started. */
  constructor(settings: PoolSettings, pooled: PooledChild, snapshot: SnapshotFile) {
    const state = startChild(settings, pooled, snapshot);
    this.#state = state;
    readMessages(state);
    const { child } = state;
    // A write to a child that has died fails; its exit event reports the death.
    child.socket.on('error', () => {});
    child.process.once('error', ({ message }) =>
      onExit(state, `it could not be started: ${message}`),
    );
    child.process.once('exit', (code, signal) => onExit(state, signal ?? `exit code ${code}`));
  }

  get pid(): number | undefined {
    return this.#state.child.pid;
  }

  get isReady(): boolean {
    return this.#state.life.phase === 'ready';
  }

  get inFlight(): number {
    return this.#state.activeRuns.count();
  }

  /** It may be killed soon, or does not answer: the pool prefers other executors. */
  isDoubtful(): boolean {
    const { activeRuns, heartbeat } = this.#state;
    return activeRuns.hasStopRequests() || heartbeat.silentMs() > doubtMs;
  }

  /** Milliseconds for which its event loop has not answered; 0 when nothing is to be answered. */
  silentMs(): number {
    return this.#state.heartbeat.silentMs();
  }

  /** Sends it a run; only while it is ready. */
  run(accepted: PoolRun): ActiveRun {
    const { activeRuns, activity, console } = this.#state;
    activity.wasBusy = true;
    const { settings } = accepted.request;
    if (settings !== undefined) console.secrets.add(formsOf(settings.secrets));
    return activeRuns.start(accepted);
  }

  abort(run: ActiveRun, reason: string): void {
    this.#state.activeRuns.abort(run, reason);
  }

  suspend(run: ActiveRun): void {
    this.#state.activeRuns.suspend(run);
  }

  /** Tells all its runs to stop. */
  abortAll(reason: string): void {
    const { activeRuns } = this.#state;
    for (const one of activeRuns.all()) activeRuns.abort(one, reason);
  }

  /** Checks its memory and its event loop; the pool calls this until it returns false. */
  watch(wasAbsent: boolean): boolean {
    return watch(this.#state, wasAbsent);
  }

  /** Kills it; all its runs are aborted. */
  end(kind: 'retired' | 'stopped'): void {
    die(this.#state, { kind });
  }
}

/** Takes the child's messages. After one garbled message, all later ones are ignored. */
function readMessages(state: ExecutorState): void {
  const reader = new LineReader(frameBytesMax);
  state.child.socket.on('data', (chunk: Buffer) => {
    if (isGarbled(state)) return;
    for (const line of reader.take(chunk)) takeLine(state, line);
    if (reader.isTooLong) garbled(state, 'a line was too long');
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
    const { child, pooled, settings } = state;
    if (pooled.port !== null) {
      const facts = { executor: child.pid, port: pooled.port };
      settings.log.info(facts, 'an executor can be debugged');
    }
    pooled.onReady(state.loading.found());
  }
}

function garbled(state: ExecutorState, how: string): void {
  die(state, { kind: 'garbled', how, begun: readMark(state.child.pid) });
}

function isGarbled({ life }: ExecutorState): boolean {
  return life.death?.kind === 'garbled';
}

function watch(state: ExecutorState, wasAbsent: boolean): boolean {
  const { life, activity, activeRuns, heartbeat, settings, pooled, child } = state;
  if (life.phase !== 'ready' && life.phase !== 'draining') return false;
  if (activeRuns.count() === 0 && !activity.wasBusy && heartbeat.silentMs() === 0) return false;
  if (wasAbsent) heartbeat.forgive();
  watchMemory(state);
  if (heartbeat.stalledMs() > settings.stallMs && pooled.port === null) {
    die(state, { kind: 'stalled', ms: settings.stallMs, begun: readMark(child.pid) });
  } else if (heartbeat.silentMs() === 0) {
    // One more ping after the last run: code that it left behind may block the loop.
    activity.wasBusy = activeRuns.count() > 0;
    state.channel.ping();
  }
  return true;
}

function watchMemory(state: ExecutorState): void {
  const { settings, child, activity } = state;
  const { reportedBytes } = activity;
  const limitMb = memoryLimitMb(settings.memoryMb);
  const memory = memoryLevel({ pid: child.pid, reportedBytes }, limitMb);
  if (memory === 'too much') {
    die(state, { kind: 'memory', mb: limitMb, begun: readMark(child.pid) });
  } else if (memory === 'much' && state.life.phase === 'ready' && state.pooled.mayDrain()) {
    const facts = { executor: child.pid, limitMb };
    settings.log.info(facts, 'an executor holds much memory and is replaced');
    drain(state, { kind: 'retired' });
    endIfDrained(state);
  }
}
