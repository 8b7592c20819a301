/** A worker handles the hints of jobs and deliveries, and cancels runs. */
import type { Consumer } from '../../adapters/queue/queue.ts';
import type { JobQueue } from '../../core/jobs/queues.ts';
import type { JobRunner } from '../../core/jobs/turns/runner.ts';
import type { Listening } from '../../kernel/bus.ts';
import type { Parts } from './parts.ts';
import type { Slices } from './slices.ts';

export class Worker {
  readonly #jobs: Slices['jobs'];
  readonly #webhooks: Slices['webhooks'];
  readonly #consumers: Consumer[];
  readonly #listening: Listening[];

  constructor({ queue, cluster }: Parts, { jobs, webhooks }: Slices) {
    const { running, runners } = jobs;
    for (const runner of runners.values()) runner.start();
    this.#jobs = jobs;
    this.#webhooks = webhooks;
    this.#consumers = [
      ...[...runners].map(([name, runner]) =>
        queue.consume(name, (hint) => runner.handleHint(hint)),
      ),
      queue.consume('webhooks', ({ id }) => webhooks.deliverer.handleHint(id)),
    ];
    this.#listening =
      cluster === null
        ? []
        : [
            cluster.bus.listen('cancellations', (jobId) => running.cancelHere(jobId)),
            cluster.bus.listen('wake-ups', (jobId) => running.wakeHere(jobId)),
            cluster.bus.listen('due-jobs', (message) => announceHere(runners, message)),
          ];
  }

  /** Takes no more hints; resolves when the work under way has ended. */
  async stop(): Promise<void> {
    const { deliverer } = this.#webhooks;
    const runners = [...this.#jobs.runners.values()];
    await Promise.all([
      ...this.#consumers.map((consumer) => consumer.stop()),
      ...runners.map((runner) => runner.stop()),
      deliverer.stop(),
    ]);
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

/** What a process without a free slot has passed on: the queue, and the organization of which jobs are due. */
function announceHere(runners: ReadonlyMap<JobQueue, JobRunner>, message: string): void {
  const [queue, organizationId] = message.split(' ') as [JobQueue, string];
  runners.get(queue)?.announceHere(organizationId);
}
