/** The observers of runs and deliveries that count them. */
import type { Metrics } from '../../adapters/http/metrics.ts';
import type {
  ObservedEnd,
  ObservedJob,
  ObservedNewJob,
  ObservedTokens,
  RunObserver,
} from '../../core/context/run-observer.ts';
import { queueOf } from '../../core/jobs/queues.ts';
import type { Recorder } from '../../platform/statistics/recorder.ts';
import type { DeliveryObserver } from '../../platform/webhooks/settle.ts';
import type { ComposedProcesses } from './slices.ts';

/** Counts runs for `/metrics`, for the statistics and for the heartbeat of this process. */
export class JobCounts implements RunObserver {
  readonly #metrics: Metrics;
  readonly #recorder: Recorder;
  readonly #processes: ComposedProcesses['local'];

  constructor(metrics: Metrics, recorder: Recorder, processes: ComposedProcesses['local']) {
    this.#metrics = metrics;
    this.#recorder = recorder;
    this.#processes = processes;
  }

  accepted(jobs: readonly ObservedNewJob[]): void {
    this.#recorder.accepted(jobs);
  }

  claimed(): void {
    this.#processes.claimed();
  }

  begun(): void {
    this.#processes.begun();
  }

  modelCalled(job: ObservedJob, tokens: ObservedTokens, cost: number | null): void {
    this.#recorder.used(job, tokens, cost);
    this.#metrics.tokensUsed(tokens, cost);
  }

  ended({ job, from, transition, durationMs }: ObservedEnd): void {
    const error = 'error' in transition ? transition.error : null;
    const name = queueOf(job.trigger_type);
    // A run that waits has ended neither its attempt nor its job.
    if (transition.status === 'waiting') return;
    if (from === 'active') this.#metrics.attemptEnded(name, durationMs, error?.code ?? null);
    if (transition.status !== 'queued') this.#recorder.ended(job, transition.status, durationMs);
    if (transition.status === 'completed' || transition.status === 'failed') {
      this.#metrics.jobEnded(name, transition.status);
    }
  }

  lost(attempts: number): void {
    this.#metrics.leasesExpired(attempts);
  }
}

/** Counts deliveries for `/metrics`. */
export function createDeliveryObserver(metrics: Metrics): DeliveryObserver {
  return ({ status, isAccepted, tookMs }) => {
    metrics.attemptEnded('webhooks', tookMs, isAccepted ? null : 'upstream_unavailable');
    if (status === 'delivered') metrics.jobEnded('webhooks', 'completed');
    if (status === 'failed') metrics.jobEnded('webhooks', 'failed');
  };
}
