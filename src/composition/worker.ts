/** What a worker does: takes jobs and deliveries from the queues, and stops runs that it is told to. */
import { jobQueues } from '../jobs/recover.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

/** Hints that are looked up at a time; what is sent at a time is the deliverer's own business. */
const deliveriesLookedUp = 1_000;

export interface Worker {
  /** Takes nothing more; resolves when what is under way has ended. */
  stop(): Promise<void>;
  /** Breaks off what is still under way: it goes back to the queues at no cost. */
  breakOff(): void;
}

export function startWorker(
  { config, queue, cluster }: Pick<Parts, 'config' | 'queue' | 'cluster'>,
  { workers, performer, outgoing }: Slices,
): Worker {
  for (const name of jobQueues) {
    workers.set(
      name,
      queue.consume(name, config.workerConcurrency, (id) => performer.perform(id)),
    );
  }
  const consumers = [
    ...workers.values(),
    queue.consume('webhooks', deliveriesLookedUp, (id) => outgoing.deliverer.take(id)),
    outgoing.deliverer,
  ];
  const cancellations = cluster?.bus.listen('cancellations', (jobId) => performer.cancel(jobId));
  return {
    async stop() {
      await Promise.all(consumers.map((consumer) => consumer.stop()));
      cancellations?.stop();
    },
    breakOff() {
      performer.handBack();
      outgoing.deliverer.breakOff();
    },
  };
}
