/** What the platform does without being asked, and how often. */

import { deleteExpired } from '../jobs/retention.ts';
import type { Clock } from '../kernel/clock.ts';
import { isUnavailable } from '../kernel/errors.ts';
import { type Repeated, repeat } from '../kernel/repeat.ts';
import { beatEveryMs } from '../processes/processes.ts';
import { deleteExpiredRuns } from '../schedules/retention.ts';
import { deleteOldStatistics } from '../statistics/retention.ts';
import { deleteOldUsage } from '../usage/retention.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

const sweepEveryMs = 1_000;
/** Between two tries of a failed renewal of leases: soon enough that no sweep ends them first. */
const renewAgainMs = 500;
const tickEveryMs = 250;
/** Between two looks at the outbox: most of what an event waits for its webhooks. */
const dispatchEveryMs = 100;
const retentionEveryMs = 60 * 60 * 1000;
/** Between two looks for signing secrets that are not encrypted yet. */
const sealEveryMs = 60_000;
/** Between two looks for memories of deleted agents. */
const purgeEveryMs = 10_000;

/** Between two writes of the statistics; a crash loses at most that much. */
const recordEveryMs = 1_000;
/** Between two writings of what triggers were called with. */
const callsEveryMs = 1_000;

/** Between two reads of the requested cancellations, in case a message of another process was lost. */
const cancelledEveryMs = 1_000;
/** Between two reads of the skill changes of other processes. */
const refreshEveryMs = 500;
/** What processes may take for the same moment, generously. */
const clocksApartMs = 2_000;
/** Between two measurements of the time that processes share. */
const measureEveryMs = 5_000;

/** Begins everything that is done again and again in a process of these roles; each is to be stopped. */
export function startBackground(
  parts: Parts,
  slices: Slices,
  clock: Clock,
  writer: string,
): Repeated[] {
  const { config, database, cluster, log } = parts;
  const { recovery, performer, memories, tick, outgoing, processes, skills } = slices;
  const { recorder, triggerCalls, secrets } = slices;
  const onTaskError = (err: unknown) =>
    isUnavailable(err)
      ? // A probe has said so already, once.
        log.debug({ err }, 'the database cannot be used; a background task waits for it')
      : log.error({ err }, 'a background task failed; it will be tried again');
  const background = (everyMs: number, task: () => Promise<unknown>) =>
    repeat(everyMs, task, onTaskError);

  const tasks: Repeated[] = [background(recordEveryMs, () => recorder.flush())];
  if (config.roles.has('api')) tasks.push(background(callsEveryMs, () => triggerCalls.flush()));
  if (config.roles.has('worker')) {
    const everyMs = config.jobLeaseMs / 3;
    const lookEveryMs = Math.min(renewAgainMs, everyMs);
    let renewedAt = Number.NEGATIVE_INFINITY;
    tasks.push(
      background(lookEveryMs, async () => {
        const now = clock.monotonic();
        if (now - renewedAt < everyMs - lookEveryMs / 2) return;
        await performer.renew();
        renewedAt = now;
      }),
    );
  }
  if (config.roles.has('scheduler')) {
    tasks.push(
      background(sweepEveryMs, () => recovery.sweep()),
      background(purgeEveryMs, () => memories.purge()),
      background(sealEveryMs, () => secrets.sealStored()),
      background(tickEveryMs, tick),
      background(dispatchEveryMs, () => outgoing.dispatcher.dispatch()),
      background(sweepEveryMs, () => outgoing.recovery.sweep()),
      background(retentionEveryMs, async () => {
        const { readTo } = outgoing.dispatcher;
        await deleteExpired({ database, clock, writer, readTo }, config.retentionDays);
      }),
      background(retentionEveryMs, () =>
        deleteExpiredRuns({ database, clock }, config.retentionDays),
      ),
      background(retentionEveryMs, () => outgoing.recovery.deleteExpired(config.retentionDays)),
      background(retentionEveryMs, () => deleteOldUsage({ database, clock })),
      background(retentionEveryMs, () => deleteOldStatistics({ database, clock })),
      background(retentionEveryMs, () => triggerCalls.deleteOld()),
      background(retentionEveryMs, async () => processes?.forgetGone()),
    );
  }
  if (cluster !== null && processes !== null) {
    tasks.push(
      background(measureEveryMs, () => cluster.clock.measure()),
      background(refreshEveryMs, () => skills.refresh()),
      background(beatEveryMs, async () => {
        const asOf = clock.now() - clocksApartMs;
        await processes.beat();
        const { executors } = parts;
        if (executors !== null) {
          await skills.confirm(executors.definitions, processes.skills(), asOf);
        }
      }),
    );
    if (config.roles.has('worker')) {
      tasks.push(background(cancelledEveryMs, () => performer.findCancelled()));
    }
  }
  return tasks;
}
