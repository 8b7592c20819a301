/** What /metrics reads when it is asked. */

import type { MetricsSource } from '../http/metrics.ts';
import { queueOf } from '../jobs/accept.ts';
import { countUnended } from '../jobs/job-lists.store.ts';
import { type QueueName, queueNames } from '../kernel/queues.ts';
import { countDeliveries } from '../webhooks/delivery-log.store.ts';
import type { Parts } from './parts.ts';

export function metricsSource({
  database,
  queue,
}: Pick<Parts, 'database' | 'queue'>): MetricsSource {
  return {
    databaseConnections: () => database.connections(),
    isQueueConnected: () => queue.isConnected(),
    async jobsByQueue() {
      const counts = Object.fromEntries(
        queueNames.map((name) => [name, { waiting: 0, active: 0 }]),
      ) as Record<QueueName, { waiting: number; active: number }>;
      for (const { trigger_type, status, n } of await countUnended(database.read)) {
        const count = counts[queueOf(trigger_type)];
        if (status === 'queued') count.waiting += n;
        if (status === 'active') count.active += n;
      }
      for (const { status, n } of await countDeliveries(database.read)) {
        if (status === 'pending') counts.webhooks.waiting += n;
        if (status === 'delivering') counts.webhooks.active += n;
      }
      return counts;
    },
  };
}
