/** What /metrics reads when it is asked. */

import type { WatchedWrites } from '../../adapters/database/watched-writes.ts';
import type { JobsOfQueue, MetricsSource } from '../../adapters/http/metrics.ts';
import { type Role, roles } from '../../core/config/readers.ts';
import { findOldestDue } from '../../core/jobs/oldest-due.store.ts';
import { queueOf } from '../../core/jobs/queues.ts';
import { countUnended } from '../../core/jobs/unended-jobs.store.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type QueueName, queueNames } from '../../kernel/queues.ts';
import { createSharedRead } from '../../kernel/shared-read.ts';
import { countDeliveries } from '../../platform/webhooks/delivery-log.store.ts';
import type { Dispatcher } from '../../platform/webhooks/dispatch.ts';
import { findOverdue } from '../../platform/webhooks/recovery.store.ts';
import type { ComposedEmbeddings } from './embeddings.ts';
import type { Parts } from './parts.ts';

/** The slices that gauges are read from. */
interface Read {
  readonly dispatcher: Dispatcher;
  readonly writes: WatchedWrites;
  readonly embeddings: Pick<ComposedEmbeddings, 'vectors'> | null;
}

/** `liveOf` tells how many processes of a role there are. */
export function metricsSource(
  { database, queue, executors }: Pick<Parts, 'database' | 'queue' | 'executors'>,
  clock: Clock,
  { dispatcher, embeddings, writes }: Read,
  liveOf: (role: Role) => number,
): MetricsSource {
  const ageOf = (dueAt: number | undefined) =>
    dueAt === undefined ? 0 : Math.max(0, clock.now() - dueAt);
  const source: MetricsSource = {
    waiting: createSharedRead(clock, async () => {
      const now = clock.now();
      const [skills, scheduled, overdue, lagMs, awaitingVectors] = await Promise.all([
        findOldestDue(database.read, 'skill-execution', now),
        findOldestDue(database.read, 'scheduled-jobs', now),
        findOverdue(database.read, now),
        dispatcher.lagMs(),
        embeddings?.vectors.countAwaiting() ?? 0,
      ]);
      return {
        oldestDueMs: {
          'skill-execution': ageOf(skills),
          'scheduled-jobs': ageOf(scheduled),
          webhooks: ageOf(overdue.oldest),
        },
        webhookBacklog: overdue.n,
        outboxLagMs: lagMs,
        awaitingVectors,
      };
    }),
    liveProcesses: () => Object.fromEntries(roles.map((role) => [role, liveOf(role)])),
    executorDeaths: () => executors?.stats().deaths ?? 0,
    databaseConnections: () => database.connections(),
    isDatabaseWritable: () => writes.isWritable(),
    isQueueConnected: () => queue.isConnected(),
    jobsByQueue: createSharedRead(clock, async () => {
      const counts = Object.fromEntries(
        queueNames.map((name) => [name, { waiting: 0, active: 0, suspended: 0 }]),
      ) as Record<QueueName, JobsOfQueue>;
      for (const { trigger_type, status, n } of await countUnended(database.read)) {
        const count = counts[queueOf(trigger_type)];
        if (status === 'queued') count.waiting += n;
        if (status === 'active') count.active += n;
        if (status === 'waiting') count.suspended += n;
      }
      for (const { status, n } of await countDeliveries(database.read)) {
        if (status === 'pending') counts.webhooks.waiting += n;
        if (status === 'delivering') counts.webhooks.active += n;
      }
      return counts;
    }),
  };
  // So that the first scrape has something to tell, should the database be slow.
  void source.waiting();
  void source.jobsByQueue();
  return source;
}
