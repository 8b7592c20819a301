/**
 * One child's life: started, ready, given runs, gone. Promises that every run it was given is
 * settled exactly once, at the latest when the child is gone, and that nothing the child says can
 * do more than end the child. Knows no other executor, and does not choose its runs.
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
import { judgeMemory, memoryLimitMb } from './memory-limit.ts';
import { readMark } from './now-running.ts';
import type { PoolSettings } from './pool-options.ts';
import { type ChildMessage, readChildLine } from './protocol.ts';

/** Milliseconds to wait for the last words of a child that has exited. */
const SOCKET_DRAIN_MS = 500;
/** Milliseconds without an answer after which an executor is doubtful. */
const DOUBT_MS = 500;

export interface ExecutorEvents {
  /** It can take runs; `skills` are those that the first child found, none of the others. */
  onReady(found: FoundSkills): void;
  /** It was ready, and takes no more runs. */
  onLeaving(): void;
  /** Its process is gone and all its runs are settled. `startFailure`: it never was ready. */
  onGone(death: Death, startFailure: Error | undefined): void;
  /** Whether one more child may stay for a while without taking runs. */
  mayDrain(): boolean;
}

export interface Executor {
  readonly pid: number | undefined;
  readonly isReady: boolean;
  readonly inFlight: number;
  /** No run was ever given to it. */
  readonly isFresh: boolean;
  /** It may be killed soon, or does not answer: others are to be preferred. */
  isDoubtful(): boolean;
  /** Sends it a run; only while it is ready. */
  run(accepted: AcceptedRun): { abort(reason: string): void };
  /** Asks all its runs to stop. */
  abortAll(reason: string): void;
  /** Looks after it; to be called every few hundred ms until it returns false. */
  watch(wasAbsent: boolean): boolean;
  /** Kills it; all its runs are aborted. */
  end(kind: 'retired' | 'stopped'): void;
}

type Phase = 'starting' | 'ready' | 'leaving' | 'dying' | 'gone';

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
      tellsMemory: !CAN_READ_MEMORY,
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
  /** How it dies when its last run has ended. */
  let exitCause: Death = { kind: 'retired' };
  let isFresh = true;
  let wasBusy = false;
  let toldBytes = 0;
  /** The run that it was beginning when it stopped answering. */
  let beginning: number | undefined;
  let drainTimer: NodeJS.Timeout | undefined;

  const read = createLineReader({
    maxBytes: FRAME_BYTES_MAX,
    onLine,
    onOverflow: () => die({ kind: 'garbled', how: 'a line was too long' }),
  });
  socket.on('data', (chunk: Buffer) => {
    if (!isDeaf()) read(chunk);
  });
  // A write to a child that has died; its exit says the rest.
  socket.on('error', () => {});
  child.process.once('error', (error) => onExit(`it could not be started: ${error.message}`));
  child.process.once('exit', (code, signal) => onExit(signal ?? `exit code ${code}`));

  function onLine(line: string): void {
    if (isDeaf()) return;
    const messages = readChildLine(line);
    if (messages === undefined) garbled('a line that is no message');
    else {
      for (const message of messages) if (!isDeaf()) take(message);
    }
    if (phase === 'leaving' && activeRuns.size === 0) die(exitCause);
  }

  function take(message: ChildMessage): void {
    switch (message[0]) {
      case 'pong':
        toldBytes = message[2];
        if (heartbeat.answer(message[1])) activeRuns.onPong();
        else garbled('an answer that nobody asked for');
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

  /** Once it has said nonsense, nothing that it says counts. */
  function isDeaf(): boolean {
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
      (phase === 'leaving' || events.mayDrain());
    if (!mayStay) {
      die({ kind: 'overdue' });
      return;
    }
    // Its loop answers, so the neighbours may end in peace. The run itself has ended for everybody
    // but its own code, which dies with the child.
    const { skill } = run.accepted.request;
    log.warn({ executor: pid, skill }, 'a run did not stop; its executor is replaced');
    const facts = runFacts(run, heartbeat.hasAnswered);
    const [outcome] = attributeDeath({ kind: 'overdue' }, [facts]);
    if (outcome !== undefined) activeRuns.remove(run, outcome);
    abandoned.push(facts);
    leave({ kind: 'overdue' });
    drainTimer ??= setTimeout(() => die(exitCause), settings.drainMs);
  }

  /** Takes no more runs, and dies when the last has ended. */
  function leave(cause: Death): void {
    exitCause = cause;
    if (phase !== 'ready') return;
    phase = 'leaving';
    events.onLeaving();
  }

  function die(cause: Death): void {
    if (phase === 'dying' || phase === 'gone') return;
    const wasReady = phase === 'ready';
    phase = 'dying';
    death = cause;
    if (pid !== undefined) killGroup(pid);
    if (wasReady) events.onLeaving();
  }

  function onExit(how: string): void {
    die({ kind: 'ended', how });
    // What it had started itself may be left.
    if (pid !== undefined) killGroup(pid);
    if (socket.closed) {
      finalize();
      return;
    }
    // Results that it had sent still count.
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
    // Those who did not stop still run, and may be to blame for what happens to the others.
    const outcomes = attributeDeath(death, [...runs, ...abandoned]);
    // A first child that could not start ends the program, which says why.
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
    const memory = judgeMemory({ pid, toldBytes }, limitMb);
    if (memory === 'too much') die({ kind: 'memory', mb: limitMb });
    else if (memory === 'much' && phase === 'ready' && events.mayDrain()) {
      log.info({ executor: pid, limitMb }, 'an executor holds much memory and is replaced');
      leave({ kind: 'retired' });
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
      if (phase !== 'ready' && phase !== 'leaving') return false;
      if (activeRuns.size === 0 && !wasBusy && heartbeat.silentMs() === 0) return false;
      if (wasAbsent) heartbeat.forgive();
      watchMemory();
      if (heartbeat.silentMs() > stallMs && inspectPort === null) {
        beginning = pid === undefined ? undefined : readMark(pid);
        die({ kind: 'stalled', ms: stallMs });
      } else if (heartbeat.silentMs() === 0) {
        // One more after the last run: what it left behind may block the loop.
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
