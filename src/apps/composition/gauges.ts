/** Reads the gauges of `/metrics` at each scrape. */

import type { Database } from '../../adapters/database/database.ts';
import type { WatchedWrites } from '../../adapters/database/watched-writes.ts';
import type { Gauges, JobsOfQueue } from '../../adapters/http/metrics.ts';
import { type Role, roles } from '../../core/config/readers.ts';
import { queueOf } from '../../core/jobs/queues.ts';
import { findOldestDue } from '../../core/jobs/turns/oldest-due.store.ts';
import { countUnended } from '../../core/jobs/unended-jobs.store.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type QueueName, queueNames } from '../../kernel/queues.ts';
import { SharedRead } from '../../kernel/shared-read.ts';
import { countDeliveries } from '../../platform/webhooks/delivery-log.store.ts';
import type { Dispatcher } from '../../platform/webhooks/dispatch.ts';
import { findOverdue } from '../../platform/webhooks/recovery.store.ts';
import type { ComposedEmbeddings } from './embeddings.ts';
import type { Parts } from './parts.ts';

/** What gauges are read from beside the parts. */
interface Sources {
  readonly dispatcher: Dispatcher;
  readonly writes: WatchedWrites;
  readonly embeddings: ComposedEmbeddings | null;
}

export class GaugeReader {
  readonly #parts: Parts;
  readonly #writes: WatchedWrites;
  readonly #liveOf: (role: Role) => number;
  readonly #waiting: SharedRead<NonNullable<Gauges['waiting']>>;
  readonly #jobsByQueue: SharedRead<Record<QueueName, JobsOfQueue>>;

  /** `liveOf` returns how many processes of a role there are. */
  constructor(parts: Parts, clock: Clock, sources: Sources, liveOf: (role: Role) => number) {
    const { database } = parts;
    this.#parts = parts;
    this.#writes = sources.writes;
    this.#liveOf = liveOf;
    this.#waiting = new SharedRead(clock, () => readWaiting(database, clock, sources));
    this.#jobsByQueue = new SharedRead(clock, () => countByQueue(database));
    // So that the first scrape has values, should the database be slow.
    void this.#waiting.get();
    void this.#jobsByQueue.get();
  }

  async read(): Promise<Gauges> {
    const { database, executors, queue } = this.#parts;
    const [jobsByQueue, waiting] = await Promise.all([
      this.#jobsByQueue.get(),
      this.#waiting.get(),
    ]);
    return {
      jobsByQueue,
      waiting,
      liveProcesses: Object.fromEntries(roles.map((role) => [role, this.#liveOf(role)])),
      executorDeaths: executors?.stats().deaths ?? 0,
      databaseConnections: database.connections(),
      isDatabaseWritable: this.#writes.isWritable(),
      isQueueConnected: queue.isConnected(),
    };
  }
}

async function readWaiting({ read }: Database, clock: Clock, { dispatcher, embeddings }: Sources) {
  const now = clock.now();
  const [skills, scheduled, overdue, outboxLagMs, awaitingVectors] = await Promise.all([
    findOldestDue(read, 'skill-execution', now),
    findOldestDue(read, 'scheduled-jobs', now),
    findOverdue(read, now),
    dispatcher.lagMs(),
    embeddings?.vectors.countAwaiting() ?? 0,
  ]);
  const ageOf = (dueAt: number | undefined) =>
    dueAt === undefined ? 0 : Math.max(0, clock.now() - dueAt);
  return {
    oldestDueMs: {
      'skill-execution': ageOf(skills),
      'scheduled-jobs': ageOf(scheduled),
      webhooks: ageOf(overdue.oldest),
    },
    webhookBacklog: overdue.n,
    outboxLagMs,
    awaitingVectors,
  };
}

async function countByQueue({ read }: Database): Promise<Record<QueueName, JobsOfQueue>> {
  const counts = Object.fromEntries(
    queueNames.map((name) => [name, { waiting: 0, active: 0, suspended: 0 }]),
  ) as Record<QueueName, JobsOfQueue>;
  for (const { trigger_type, status, n } of await countUnended(read)) {
    const count = counts[queueOf(trigger_type)];
    if (status === 'queued') count.waiting += n;
    if (status === 'active') count.active += n;
    if (status === 'waiting') count.suspended += n;
  }
  for (const { status, n } of await countDeliveries(read)) {
    if (status === 'pending') counts.webhooks.waiting += n;
    if (status === 'delivering') counts.webhooks.active += n;
  }
  return counts;
}
