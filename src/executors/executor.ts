/**
 * The life of one child process: starting, ready, draining, dying, gone. Promises that every run that
 * was given to the child is settled exactly once, at the latest when the child is gone, and that no
 * message of the child can do more than end the child. Knows no other executor and chooses no runs.
 */

import { type AcceptedRun, type ActiveRun, runFacts } from './active-run.ts';
import { type Channel, createActiveRuns } from './active-runs.ts';
import { createRunMessageHandler, createStrayMessageLogger } from './child-messages.ts';
import { CAN_READ_MEMORY, explainExit, killGroup, spawnChild } from './child-process.ts';
import { tapConsole } from './console-tap.ts';
import { attributeDeath, type Death, isFault, type RunFacts } from './death-attribution.ts';
import type { Generation } from './generation.ts';
import { createHeartbeat } from './heartbeat.ts';
import { FRAME_BYTES_MAX } from './limits.ts';
import { createLineReader, createOutbox } from './lines.ts';
import { createLoading, type FoundSkills } from './loading.ts';
import { memoryLevel, memoryLimitMb } from './memory-limit.ts';
import { readMark } from './now-running.ts';
import type { PoolSettings } from './pool-options.ts';
import { type ChildMessage, readChildLine } from './protocol.ts';

/** Milliseconds to wait for the messages of a child that has exited. */
const SOCKET_DRAIN_MS = 500;
/** An executor that is silent for this many milliseconds is doubtful. */
const DOUBT_MS = 500;

export interface ExecutorEvents {
  /** It can take runs; `skills` are those that the first child found, none of the others. */
  onReady(found: FoundSkills): void;
  /** It was ready, and now takes no more runs. */
  onUnavailable(): void;
  /** Its process is gone and all its runs are settled. `startFailure` says why it was never ready. */
  onGone(death: Death, startFailure: Error | undefined): void;
  /** Whether one more child may drain. */
  mayDrain(): boolean;
}

export interface Executor {
  readonly pid: number | undefined;
  readonly isReady: boolean;
  readonly inFlight: number;
  /** No run was ever given to it. */
  readonly isFresh: boolean;
  /** It may be killed soon, or does not answer: the pool prefers other executors. */
  isDoubtful(): boolean;
  /** Sends it a run; only while it is ready. */
  run(accepted: AcceptedRun): { abort(reason: string): void };
  /** Asks all its runs to stop. */
  abortAll(reason: string): void;
  /** Checks its memory and its event loop; the pool calls this until it returns false. */
  watch(wasAbsent: boolean): boolean;
  /** Kills it; all its runs are aborted. */
  end(kind: 'retired' | 'stopped'): void;
}

type Phase = 'starting' | 'ready' | 'draining' | 'dying' | 'gone';

export function startExecutor(
  settings: PoolSettings,
  generation: Generation,
  { isFirst, inspectPort }: { isFirst: boolean; inspectPort: number | null },
  events: ExecutorEvents,
): Executor {
  const { clock, log, memoryMb, loadMs, stallMs } = settings;
  const child = spawnChild({
    memoryMb,
    env: settings.env,
    snapshotFd: generation.snapshotFd,
    inspectPort,
    settings: {
      skillsDirs: settings.skillsDirs,
      isFirst,
      setAside: generation.filesSetAside(),
      reportsMemory: !CAN_READ_MEMORY,
    },
  });
  const { pid, socket } = child;
  const tap = tapConsole(child.process, pid, log);
  const loading = createLoading({
    isFirst,
    loadMs: inspectPort === null ? loadMs : null,
    pid,
    clock,
    log,
    onLate: () => die({ kind: 'unready' }),
  });
  const heartbeat = createHeartbeat(() => clock.monotonic());
  const outbox = createOutbox(
    (line) => void socket.write(line),
    () => `["ping",${heartbeat.next()}]`,
  );
  const channel: Channel = {
    push: outbox.push,
    flushAndPing() {
      outbox.flush();
      socket.write(`[["ping",${heartbeat.next()}]]\n`);
    },
  };
  const activeRuns = createActiveRuns({
    channel,
    heartbeat,
    clock,
    graceMs: settings.graceMs,
    hasDeadlines: inspectPort === null,
    onOverdue,
  });
  const handleRunMessage = createRunMessageHandler({ activeRuns, channel, clock, log });
  const logStrayMessage = createStrayMessageLogger(pid, log);
  const limitMb = memoryLimitMb(memoryMb);

  const abandoned: RunFacts[] = [];
  let phase: Phase = 'starting';
  let death: Death | undefined;
  /** Why it is ended when its last run has ended. */
  let exitCause: Death = { kind: 'retired' };
  let isFresh = true;
  let wasBusy = false;
  let reportedBytes = 0;
  /** The run that it was starting when it stopped answering. */
  let beginning: number | undefined;
  let drainTimer: NodeJS.Timeout | undefined;

  const read = createLineReader({
    maxBytes: FRAME_BYTES_MAX,
    onLine,
    onOverflow: () => die({ kind: 'garbled', how: 'a line was too long' }),
  });
  socket.on('data', (chunk: Buffer) => {
    if (!isIgnored()) read(chunk);
  });
  // A write to a child that has died fails; its exit event reports the death.
  socket.on('error', () => {});
  child.process.once('error', (error) => onExit(`it could not be started: ${error.message}`));
  child.process.once('exit', (code, signal) => onExit(signal ?? `exit code ${code}`));

  function onLine(line: string): void {
    if (isIgnored()) return;
    const messages = readChildLine(line);
    if (messages === undefined) garbled('a line that is no message');
    else {
      for (const message of messages) if (!isIgnored()) take(message);
    }
    if (phase === 'draining' && activeRuns.size === 0) die(exitCause);
  }

  function take(message: ChildMessage): void {
    switch (message[0]) {
      case 'pong':
        reportedBytes = message[2];
        if (heartbeat.answer(message[1])) activeRuns.onPong();
        else garbled('an answer without a request');
        break;
      case 'stray':
      case 'dropped':
        logStrayMessage(message);
        break;
      case 'loading':
      case 'skill':
      case 'left-out':
      case 'ready':
      case 'refused':
      case 'unloaded':
        onStart(phase === 'starting' ? loading.take(message) : 'garbled');
        break;
      default: {
        const fault = handleRunMessage(message);
        if (fault !== undefined) garbled(fault);
      }
    }
  }

  /** After one garbled message, all later ones are ignored. */
  function isIgnored(): boolean {
    return death?.kind === 'garbled';
  }

  function garbled(how: string): void {
    die({ kind: 'garbled', how });
  }

  function onStart(step: ReturnType<typeof loading.take>): void {
    if (step === 'garbled') garbled('a start that is none');
    else if (step === 'refused') die({ kind: 'unready' });
    else if (step === 'ready') {
      phase = 'ready';
      if (inspectPort !== null) {
        log.info({ executor: pid, port: inspectPort }, 'an executor can be debugged');
      }
      events.onReady(loading);
    }
  }

  function onOverdue(run: ActiveRun): void {
    const mayStay =
      run.stopRequest?.receivedAt !== undefined &&
      activeRuns.size > 1 &&
      settings.drainMs > 0 &&
      (phase === 'draining' || events.mayDrain());
    if (!mayStay) {
      die({ kind: 'overdue' });
      return;
    }
    // Its event loop answers, so the other runs may finish. The overdue run is settled now; its code
    // goes on until the child is killed.
    const { skill } = run.accepted.request;
    log.warn({ executor: pid, skill }, 'a run did not stop; its executor is replaced');
    const facts = runFacts(run, heartbeat.hasAnswered);
    const [outcome] = attributeDeath({ kind: 'overdue' }, [facts]);
    if (outcome !== undefined) activeRuns.remove(run, outcome);
    abandoned.push(facts);
    drain({ kind: 'overdue' });
    drainTimer ??= setTimeout(() => die(exitCause), settings.drainMs);
  }

  /** Takes no more runs, and ends when the last run has ended. */
  function drain(cause: Death): void {
    exitCause = cause;
    if (phase !== 'ready') return;
    phase = 'draining';
    events.onUnavailable();
  }

  function die(cause: Death): void {
    if (phase === 'dying' || phase === 'gone') return;
    const wasReady = phase === 'ready';
    phase = 'dying';
    death = cause;
    if (pid !== undefined) killGroup(pid);
    if (wasReady) events.onUnavailable();
  }

  function onExit(how: string): void {
    die({ kind: 'ended', how });
    // Processes that it started itself may still run.
    if (pid !== undefined) killGroup(pid);
    if (socket.closed) {
      finalize();
      return;
    }
    // Results that it sent before it exited still count.
    const timer = setTimeout(finalize, SOCKET_DRAIN_MS);
    socket.once('close', () => {
      clearTimeout(timer);
      finalize();
    });
  }

  function finalize(): void {
    if (phase === 'gone' || death === undefined) return;
    phase = 'gone';
    loading.stop();
    clearTimeout(drainTimer);
    if (death.kind === 'ended') death = { kind: 'ended', how: explainExit(death.how, tap.tail()) };
    socket.destroy();
    tap.close();
    const left = activeRuns.all();
    const runs = left.map((run) => runFacts(run, heartbeat.hasAnswered, beginning));
    // The code of abandoned runs still ran, so one of them may be the cause.
    const outcomes = attributeDeath(death, [...runs, ...abandoned]);
    // When the first child cannot start, the program ends and reports the reason.
    const isFirstStart = isFirst && !loading.isReady;
    if (isFault(death) && !isFirstStart)
      log.warn({ executor: pid, death, runs: left.length }, 'an executor died');
    for (const [i, outcome] of outcomes.entries()) {
      const run = left[i];
      if (run !== undefined) activeRuns.remove(run, outcome);
    }
    events.onGone(death, loading.isReady ? undefined : whyNotReady(death));
  }

  function whyNotReady(cause: Death): Error {
    return loading.failure(cause.kind === 'ended' ? cause.how : cause.kind, tap.tail());
  }

  function watchMemory(): void {
    const memory = memoryLevel({ pid, reportedBytes }, limitMb);
    if (memory === 'too much') die({ kind: 'memory', mb: limitMb });
    else if (memory === 'much' && phase === 'ready' && events.mayDrain()) {
      log.info({ executor: pid, limitMb }, 'an executor holds much memory and is replaced');
      drain({ kind: 'retired' });
      if (activeRuns.size === 0) die(exitCause);
    }
  }

  return {
    pid,
    get isReady() {
      return phase === 'ready';
    },
    get inFlight() {
      return activeRuns.size;
    },
    get isFresh() {
      return isFresh;
    },
    isDoubtful: () => activeRuns.hasStopRequests() || heartbeat.silentMs() > DOUBT_MS,
    run(accepted) {
      isFresh = false;
      wasBusy = true;
      const run = activeRuns.start(accepted);
      return { abort: (reason) => activeRuns.abort(run, reason) };
    },
    abortAll(reason) {
      for (const run of activeRuns.all()) activeRuns.abort(run, reason);
    },
    watch(wasAbsent) {
      if (phase !== 'ready' && phase !== 'draining') return false;
      if (activeRuns.size === 0 && !wasBusy && heartbeat.silentMs() === 0) return false;
      if (wasAbsent) heartbeat.forgive();
      watchMemory();
      if (heartbeat.silentMs() > stallMs && inspectPort === null) {
        beginning = pid === undefined ? undefined : readMark(pid);
        die({ kind: 'stalled', ms: stallMs });
      } else if (heartbeat.silentMs() === 0) {
        // One more ping after the last run: code that it left behind may block the loop.
        wasBusy = activeRuns.size > 0;
        channel.flushAndPing();
      }
      return true;
    },
    end(kind) {
      die({ kind });
    },
  };
}
