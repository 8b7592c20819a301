/** The tasks that the platform repeats without a request, and how often. */

import type { Database } from '../../adapters/database/database.ts';
import { deleteOldBatches } from '../../core/jobs/batches/batch-retention.ts';
import { deleteExpired } from '../../core/jobs/retention.ts';
import type { RunningJobs } from '../../core/jobs/runs/running-jobs.ts';
import { endLostCalls } from '../../core/usage/embedding-calls.ts';
import { deleteOldUsage } from '../../core/usage/usage.ts';
import type { Clock } from '../../kernel/clock.ts';
import { isUnavailable } from '../../kernel/errors.ts';
import { Repeated } from '../../kernel/repeat.ts';
import { removeApprovals } from '../../platform/approvals/approvals.ts';
import { beatEveryMs } from '../../platform/processes/processes.ts';
import { deleteOldEvents } from '../../platform/run-events/retention.ts';
import { removeUntakeable } from '../../platform/run-events/untakeable.ts';
import { deleteExpiredRuns } from '../../platform/schedules/schedules.ts';
import { deleteOldStatistics } from '../../platform/statistics/statistics.ts';
import { deleteExpiredDeliveries } from '../../platform/webhooks/retention.ts';
import { deleteEndedSessions } from '../console/ended-sessions.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

const sweepEveryMs = 1_000;
/** Between two tries of a failed renewal of leases: soon enough that no sweep ends them first. */
const renewAgainMs = 500;
const tickEveryMs = 250;
/** Between two reads of the outbox: most of the delay of an event's webhooks. */
const dispatchEveryMs = 100;
const retentionEveryMs = 60 * 60 * 1000;
/** Before the first deletions: a start answers its first requests before it. */
const retentionAfterMs = 500;
/** Between two searches for signing secrets that are not encrypted yet. */
const sealEveryMs = 60_000;
/** Between two searches for memories of deleted agents and expired ones, events that no job can take any more, and ended sessions. */
const purgeEveryMs = 10_000;
/** Between two searches for memories that await a vector. */
const embedEveryMs = 1_000;
/** Between two searches for conversations of which memories are to be formed. */
const formEveryMs = 1_000;
/** Between two writes of the statistics; a crash loses at most that much. */
const recordEveryMs = 1_000;
/** Between two writes of the calls of triggers. */
const callsEveryMs = 1_000;

/** Between two reads of the waits of runs. */
const waitsEveryMs = 1_000;
/** Between two reads of the requested cancellations. */
const cancelledEveryMs = 1_000;
/** Between two reads of the skill changes of other processes. */
const refreshEveryMs = 500;
/** Between two reads of the weights of organizations, and of their settings for prompts, that another process has set. */
const weightsEveryMs = 1_000;
/** How far the clocks of two processes may be apart, with a margin. */
const clocksApartMs = 2_000;
/** Between two measurements of the time that processes share. */
const measureEveryMs = 5_000;

/** A task, the time between two runs of it, and the time before the first one. */
type Task = readonly [everyMs: number, run: () => Promise<unknown>, afterMs?: number];

/** Begins all tasks of a process of these roles; the caller stops each of them. */
export function startBackground(
  parts: Parts,
  slices: Slices,
  clock: Clock,
  writer: string,
): Repeated[] {
  const { roles } = parts.config;
  const tasks: Task[] = [
    [recordEveryMs, () => slices.recorder.flush()],
    [retentionEveryMs, () => slices.files.removeStale(), retentionAfterMs],
  ];
  if (roles.has('api')) tasks.push([callsEveryMs, () => slices.triggerCalls.flush()]);
  if (roles.has('worker')) tasks.push(...workerTasks(parts, slices, clock));
  if (roles.has('scheduler')) {
    tasks.push(...schedulerTasks(slices), ...retentionTasks(parts, slices, clock, writer));
    // Also without EMBEDDING_MODEL: an earlier process may have had one.
    tasks.push([purgeEveryMs, () => endLostCalls({ database: parts.database, clock })]);
    const { embeddings } = slices;
    if (embeddings !== null) tasks.push([embedEveryMs, () => embeddings.vectors.embedSome()]);
  }
  tasks.push(...clusterTasks(parts, slices, clock));
  const onTaskError = (err: unknown) =>
    isUnavailable(err)
      ? // A probe has logged it already, once.
        parts.log.debug({ err }, 'the database cannot be used; a background task waits for it')
      : parts.log.error({ err }, 'a background task failed; it will be tried again');
  return tasks.map(([everyMs, run, afterMs]) => new Repeated(everyMs, run, onTaskError, afterMs));
}

function workerTasks({ config, database }: Parts, { jobs }: Slices, clock: Clock): Task[] {
  const { running } = jobs;
  const everyMs = config.jobLeaseMs / 3;
  const checkEveryMs = Math.min(renewAgainMs, everyMs);
  let renewedAt = Number.NEGATIVE_INFINITY;
  const renew = async () => {
    const now = clock.monotonic();
    if (now - renewedAt < everyMs - checkEveryMs / 2) return;
    await running.renewLeases();
    renewedAt = now;
  };
  return [[checkEveryMs, renew], ...watchTasks(database, running)];
}

/**
 * Finds cancellations and ended waits of the runs here, of which this process was not notified: the message of another
 * process was lost, or PostgreSQL did not confirm the commit. On SQLite neither can happen.
 */
export function watchTasks({ read }: Pick<Database, 'read'>, running: RunningJobs): Task[] {
  if (read.dialect === 'sqlite') return [];
  return [
    [cancelledEveryMs, () => running.findCancelled()],
    [waitsEveryMs, () => running.answerWaits()],
  ];
}

function schedulerTasks({
  files,
  jobs,
  memories,
  memoryFormations,
  runEvents,
  signingSecrets,
  tick,
  webhooks,
}: Slices): Task[] {
  return [
    [sweepEveryMs, () => jobs.recovery.sweep()],
    [sweepEveryMs, () => jobs.batchEnds.complete()],
    [formEveryMs, () => memoryFormations.run()],
    [sweepEveryMs, () => runEvents.handover.handOverAll()],
    [purgeEveryMs, () => memories.purge()],
    [purgeEveryMs, () => memories.expire()],
    [purgeEveryMs, () => files.purge()],
    [purgeEveryMs, () => removeUntakeable(runEvents.database)],
    [purgeEveryMs, () => webhooks.listeners.removeExpired()],
    [sealEveryMs, () => signingSecrets.sealStored()],
    [tickEveryMs, () => tick.run()],
    [dispatchEveryMs, () => webhooks.dispatcher.dispatch()],
    [sweepEveryMs, () => webhooks.recovery.sweep()],
  ];
}

/** Deletes rows whose retention has passed. */
function retentionTasks(
  { config, database }: Parts,
  { processes, prompts, triggerCalls, webhooks }: Slices,
  clock: Clock,
  writer: string,
): Task[] {
  const { retentionDays } = config;
  const deletions = [
    async () => {
      const readTo = await webhooks.dispatcher.readTo();
      const removeOfJobs = removeApprovals;
      return deleteExpired({ database, clock, writer, readTo, removeOfJobs }, retentionDays);
    },
    () => prompts.expire(),
    () => deleteOldBatches(database, clock, retentionDays),
    () => deleteExpiredRuns(database, clock, retentionDays),
    () => deleteExpiredDeliveries({ database, clock, writer }, retentionDays),
    () => deleteOldEvents(database, clock),
    () => deleteOldUsage({ database, clock }),
    () => deleteOldStatistics({ database, clock }),
    () => triggerCalls.deleteOld(),
    () => deleteEndedSessions({ database, clock }),
    async () => processes.cluster?.forgetGone(),
  ];
  return deletions.map((run) => [retentionEveryMs, run, retentionAfterMs]);
}

/** What keeps a process of a cluster in step with the others. */
function clusterTasks(
  { cluster, executors }: Parts,
  { jobs, processes, prompts, skills, weights }: Slices,
  clock: Clock,
): Task[] {
  const members = processes.cluster;
  if (cluster === null || members === null) return [];
  const beat = async () => {
    const asOf = clock.now() - clocksApartMs;
    await members.beat();
    if (executors !== null) await skills.confirm(executors.definitions, members.skills(), asOf);
  };
  return [
    [measureEveryMs, () => cluster.clock.measure()],
    [refreshEveryMs, () => skills.refresh()],
    [weightsEveryMs, () => weights.refresh()],
    [weightsEveryMs, () => prompts.refresh()],
    [refreshEveryMs, () => jobs.places.settings.refresh()],
    [beatEveryMs, beat],
  ];
}
