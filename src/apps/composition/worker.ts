/** A worker handles the hints of jobs and deliveries, and cancels runs. */
import type { Consumer } from '../../adapters/queue/queue.ts';
import { jobQueues } from '../../core/jobs/queues.ts';
import type { Listening } from '../../kernel/bus.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

/** Hints of deliveries that are looked up at a time; lanes limit how many deliveries run. */
const deliveryHintsMax = 1_000;

export class Worker {
  readonly #jobs: Slices['jobs'];
  readonly #webhooks: Slices['webhooks'];
  readonly #consumers: Consumer[];
  readonly #listening: Listening[];

  constructor({ config, queue, cluster }: Parts, { jobs, webhooks }: Slices) {
    const { performer, running, workers } = jobs;
    for (const name of jobQueues) {
      const perform = (id: string) => performer.perform(id);
      workers.set(name, queue.consume(name, config.workerConcurrency, perform));
    }
    const handleHint = (id: string) => webhooks.deliverer.handleHint(id);
    this.#jobs = jobs;
    this.#webhooks = webhooks;
    this.#consumers = [
      ...workers.values(),
      queue.consume('webhooks', deliveryHintsMax, handleHint),
    ];
    this.#listening =
      cluster === null
        ? []
        : [
            cluster.bus.listen('cancellations', (jobId) => running.cancelHere(jobId)),
            cluster.bus.listen('wake-ups', (jobId) => running.wakeHere(jobId)),
          ];
  }

  /** Takes no more hints; resolves when the work under way has ended. */
  async stop(): Promise<void> {
    const { deliverer } = this.#webhooks;
    await Promise.all([...this.#consumers.map((consumer) => consumer.stop()), deliverer.stop()]);
    await this.#stopSearches();
    for (const one of this.#listening) one.stop();
  }

  /** Aborts the work under way: it goes back to the queues and is charged no attempt. */
  breakOff(): void {
    this.#jobs.running.handBack();
    void this.#stopSearches();
    this.#webhooks.deliverer.abort();
  }

  async #stopSearches(): Promise<void> {
    const searches = [...this.#jobs.unconfirmed, this.#webhooks.unconfirmed];
    await Promise.all(searches.map((one) => one.stop()));
  }
}
