/** A worker handles the hints of jobs and deliveries, and cancels runs. */
import { jobQueues } from '../../core/jobs/queues.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

/** Hints of deliveries that are looked up at a time; lanes limit how many deliveries run. */
const deliveryHintsMax = 1_000;

export interface Worker {
  /** Takes no more hints; resolves when the work under way has ended. */
  stop(): Promise<void>;
  /** Aborts the work under way: it goes back to the queues and is charged no attempt. */
  breakOff(): void;
}

export function startWorker(
  { config, queue, cluster }: Pick<Parts, 'config' | 'queue' | 'cluster'>,
  {
    jobs: { workers, performer, running, unconfirmed },
    webhooks: { deliverer, unconfirmed: unconfirmedDeliveries },
  }: Pick<Slices, 'jobs' | 'webhooks'>,
): Worker {
  for (const name of jobQueues) {
    workers.set(
      name,
      queue.consume(name, config.workerConcurrency, (id) => performer.perform(id)),
    );
  }
  const consumers = [
    ...workers.values(),
    queue.consume('webhooks', deliveryHintsMax, (id) => deliverer.handleHint(id)),
    deliverer,
  ];
  const searches = [...unconfirmed, unconfirmedDeliveries];
  const listening = [
    cluster?.bus.listen('cancellations', (jobId) => running.cancelHere(jobId)),
    cluster?.bus.listen('wake-ups', (jobId) => running.wakeHere(jobId)),
  ];
  return {
    async stop() {
      await Promise.all(consumers.map((consumer) => consumer.stop()));
      await Promise.all(searches.map((one) => one.stop()));
      for (const one of listening) one?.stop();
    },
    breakOff() {
      running.handBack();
      for (const one of searches) void one.stop();
      deliverer.abort();
    },
  };
}
