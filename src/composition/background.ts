/** What the platform does without being asked, and how often. */

import { deleteExpired } from '../jobs/retention.ts';
import type { Clock } from '../kernel/clock.ts';
import { type Repeated, repeat } from '../kernel/repeat.ts';
import { deleteExpiredRuns } from '../schedules/retention.ts';
import { deleteOldUsage } from '../usage/retention.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

const sweepEveryMs = 1_000;
const tickEveryMs = 250;
/** Between two looks at the outbox: most of what an event waits for its webhooks. */
const dispatchEveryMs = 100;
const retentionEveryMs = 60 * 60 * 1000;
/** Between two looks for memories of deleted agents. */
const purgeEveryMs = 10_000;

/** Begins everything that is done again and again; each is to be stopped. */
export function startBackground(
  { config, database, log }: Pick<Parts, 'config' | 'database' | 'log'>,
  slices: Slices,
  clock: Clock,
  writer: string,
): Repeated[] {
  const { recovery, performer, memories, tick, outgoing } = slices;
  const onTaskError = (err: unknown) =>
    log.error({ err }, 'a background task failed; it will be tried again');
  const background = (everyMs: number, task: () => Promise<unknown>) =>
    repeat(everyMs, task, onTaskError);
  return [
    background(sweepEveryMs, () => recovery.sweep()),
    background(config.jobLeaseMs / 3, () => performer.renew()),
    background(purgeEveryMs, () => memories.purge()),
    background(tickEveryMs, tick),
    background(dispatchEveryMs, () => outgoing.dispatcher.dispatch()),
    background(sweepEveryMs, () => outgoing.recovery.sweep()),
    background(retentionEveryMs, async () => {
      // After a long standstill, what is old may not have been read.
      await outgoing.dispatcher.dispatch();
      await deleteExpired({ database, clock, writer }, config.retentionDays);
    }),
    background(retentionEveryMs, () =>
      deleteExpiredRuns({ database, clock }, config.retentionDays),
    ),
    background(retentionEveryMs, () => outgoing.recovery.deleteExpired(config.retentionDays)),
    background(retentionEveryMs, () => deleteOldUsage({ database, clock })),
  ];
}
