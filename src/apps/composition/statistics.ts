/** The observers of runs and deliveries that count them for `/metrics`. */
import type { Metrics } from '../../adapters/http/metrics.ts';
import type {
  ObservedCall,
  ObservedClaim,
  ObservedEnd,
  ObservedJob,
  RunObserver,
} from '../../core/context/run-observer.ts';
import { queueOf } from '../../core/jobs/queues.ts';
import type { DeliveryObserver } from '../../platform/webhooks/settle.ts';

export class RunMetrics implements RunObserver {
  readonly #metrics: Metrics;

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  modelCalled(_: ObservedJob, { tokens, cost }: ObservedCall): void {
    this.#metrics.tokensUsed(tokens, cost);
  }

  ended({ job, from, transition, durationMs }: ObservedEnd): void {
    const error = 'error' in transition ? transition.error : null;
    const name = queueOf(job.trigger_type);
    // A run that waits has ended neither its attempt nor its job.
    if (transition.status === 'waiting') return;
    if (from === 'active') this.#metrics.attemptEnded(name, durationMs, error?.code ?? null);
    if (transition.status === 'completed' || transition.status === 'failed') {
      this.#metrics.jobEnded(name, transition.status);
    }
  }

  lost(jobs: readonly ObservedClaim[]): void {
    this.#metrics.leasesExpired(jobs.length);
  }
}

export function createDeliveryObserver(metrics: Metrics): DeliveryObserver {
  return ({ status, isAccepted, tookMs }) => {
    metrics.attemptEnded('webhooks', tookMs, isAccepted ? null : 'upstream_unavailable');
    if (status === 'delivered') metrics.jobEnded('webhooks', 'completed');
    if (status === 'failed') metrics.jobEnded('webhooks', 'failed');
  };
}
