/** Statistics, and everything that is counted while jobs and deliveries pass through. */
import type { Metrics } from '../../adapters/http/metrics.ts';
import type { Context } from '../../core/context/context.ts';
import type {
  ObservedEnd,
  ObservedJob,
  ObservedNewJob,
  ObservedTokens,
  RunObserver,
} from '../../core/context/run-observer.ts';
import { findOldestDueOf } from '../../core/jobs/oldest-due.store.ts';
import { queueOf } from '../../core/jobs/queues.ts';
import { countUnendedOf } from '../../core/jobs/unended-jobs.store.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import { listScheduledJobsOfSkill } from '../../platform/schedules/schedules.store.ts';
import { Recorder } from '../../platform/statistics/recorder.ts';
import { Statistics } from '../../platform/statistics/statistics.ts';
import { listTriggersOfSkill } from '../../platform/triggers/triggers.store.ts';
import type { DeliveryObserver } from '../../platform/webhooks/settle.ts';
import type { ComposedProcesses } from './processes.ts';

export function composeStatistics(context: Context, skills: SkillRegistry) {
  const { read } = context.database;
  const statistics = new Statistics(context, skills, {
    unended: (organizationId) => countUnendedOf(read, organizationId),
    oldestDue: (organizationId, now) => findOldestDueOf(read, organizationId, now),
    scheduledJobs: (organizationId, skill, limit) =>
      listScheduledJobsOfSkill(read, organizationId, skill, limit),
    triggers: (organizationId, skill, limit) =>
      listTriggersOfSkill(read, organizationId, skill, limit),
  });
  return { statistics, recorder: new Recorder(context) };
}

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
