/** What /health watches (specification: Health and metrics). */
import type { WatchedWrites } from '../../adapters/database/watched-writes.ts';
import type { Probe } from '../../adapters/http/health.ts';
import type { PoolStats } from '../../core/executors/pool.ts';
import { jobQueues } from '../../core/jobs/queues.ts';
import { findOldestDue } from '../../core/jobs/turns/oldest-due.store.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Processes } from '../../platform/processes/processes.ts';
import type { Parts } from './parts.ts';

/** A worker is stuck when a job has been due for so long and no worker has claimed any in that time. */
const stuckMs = 30_000;

/** An executor that is not ready after so long has many skills to load, or cannot start. */
const slowStartMs = 5_000;

export function probesOf(
  { database, queue, executors }: Parts,
  writes: WatchedWrites,
  processes: Processes | null,
  clock: Clock,
): Probe[] {
  const probes: Probe[] = [
    { name: 'database', isCritical: true, check: () => database.ping() },
    { name: 'writes', isCritical: true, check: () => writes.check() },
    {
      name: 'queue',
      isCritical: true,
      check: async () => assertTrue(queue.isConnected(), 'the store of the queue cannot be used'),
    },
  ];
  if (executors !== null) {
    probes.push({
      name: 'executors',
      isCritical: false,
      check: async () => assertTrue(canRun(executors.stats()), 'no executor is ready'),
    });
  }
  if (processes !== null) {
    probes.push(
      {
        name: 'workers',
        isCritical: false,
        async check() {
          assertTrue(processes.live('worker') > 0, 'no process with the role worker is live');
          const since = clock.now() - stuckMs;
          if (processes.lastClaimAt() > since) return;
          for (const name of jobQueues) {
            assertTrue(
              (await findOldestDue(database.read, name, since)) === undefined,
              'due jobs wait and no worker claims any',
            );
          }
        },
      },
      {
        name: 'schedulers',
        isCritical: false,
        check: async () =>
          assertTrue(processes.live('scheduler') > 0, 'no process with the role scheduler is live'),
      },
    );
  }
  return probes;
}

/** A worker without runs has no executor, and starts one for the next run. */
function canRun({ executors, failedStarts, waitedMs }: PoolStats): boolean {
  return executors > 0 || (failedStarts === 0 && waitedMs < slowStartMs);
}

function assertTrue(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
