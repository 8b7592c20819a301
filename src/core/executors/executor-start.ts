/** The start of an executor's child, and its state then. */
import { canReadProc } from '../../kernel/proc.ts';
import type { LoadPlan } from '../skills/sources/load-plan.ts';
import { ActiveRuns } from './active-runs.ts';
import { Channel } from './channel.ts';
import { spawnChild } from './child-process.ts';
import type { PooledChild } from './child-starts.ts';
import { Budget } from './console-budget.ts';
import { ConsoleTap } from './console-tap.ts';
import { die, type ExecutorState, onOverdue } from './executor-end.ts';
import { Heartbeat } from './heartbeat.ts';
import { consoleBytesPerSecond, straysPerSecond } from './limits.ts';
import { Loading } from './loading.ts';
import { readMark } from './now-running.ts';
import type { PoolSettings } from './pool-options.ts';
import { KnownSecrets } from './redaction.ts';
import type { SnapshotFile } from './snapshot-file.ts';

/** Throws where no process can be started. */
export function startChild(
  settings: PoolSettings,
  pooled: PooledChild,
  snapshot: SnapshotFile,
): ExecutorState {
  const { clock, log, memoryMb, env, skillsDirs, graceMs, loadMs, plan } = settings;
  const { isFirst, port: inspectPort } = pooled;
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
  const heartbeat = new Heartbeat(() => clock.monotonic());
  const channel = new Channel((line) => void child.socket.write(line), heartbeat);
  const secrets = new KnownSecrets();
  const state: ExecutorState = {
    settings,
    pooled,
    child,
    channel,
    heartbeat,
    loading: new Loading(
      { isFirst, hasPlan: isPrepared, loadMs: inspectPort === null ? loadMs : null },
      { pid, clock, log },
      () => die(state, { kind: 'unready' }),
    ),
    activeRuns: new ActiveRuns(
      { channel, heartbeat, begun: () => readMark(pid) },
      clock,
      { graceMs, hasDeadlines: inspectPort === null },
      (overdue) => onOverdue(state, overdue),
    ),
    console: {
      tap: new ConsoleTap(child.process, pid, log, secrets),
      secrets,
      printed: new Budget(consoleBytesPerSecond),
      strays: new Budget(straysPerSecond),
    },
    activity: { wasBusy: false, reportedBytes: 0 },
    life: {
      phase: 'starting',
      death: undefined,
      exitCause: { kind: 'retired' },
      drainTimer: undefined,
      abandoned: [],
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
  state.channel.flush();
}
