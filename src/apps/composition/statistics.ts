/** Statistics, and everything that is counted while jobs and deliveries pass through. */
import type { Metrics } from '../../adapters/http/metrics.ts';
import type { Context } from '../../core/context/context.ts';
import { findOldestDueOf } from '../../core/jobs/oldest-due.store.ts';
import { queueOf } from '../../core/jobs/queues.ts';
import { countUnendedOf } from '../../core/jobs/unended-jobs.store.ts';
import type { SkillRegistry } from '../../core/skills/registry.ts';
import { listScheduledJobsOfSkill } from '../../platform/schedules/schedules.store.ts';
import { createRecorder, type Recorder } from '../../platform/statistics/recorder.ts';
import { createStatistics } from '../../platform/statistics/statistics.ts';
import { listTriggersOfSkill } from '../../platform/triggers/triggers.store.ts';
import type { SettleDeps } from '../../platform/webhooks/settle.ts';
import type { JobObserver } from './jobs.ts';
import type { ComposedProcesses } from './processes.ts';

export function composeStatistics(
  { database, clock, log }: Pick<Context, 'database' | 'clock' | 'log'>,
  skills: SkillRegistry,
) {
  const statistics = createStatistics({
    database,
    clock,
    skills,
    sources: {
      unended: (...asked) => countUnendedOf(database.read, ...asked),
      oldestDue: (...asked) => findOldestDueOf(database.read, ...asked),
      scheduledJobs: (...asked) => listScheduledJobsOfSkill(database.read, ...asked),
      triggers: (...asked) => listTriggersOfSkill(database.read, ...asked),
    },
  });
  return { statistics, recorder: createRecorder({ database, clock, log }) };
}

/** Counts jobs for `/metrics`, for the statistics and for the heartbeat of this process. */
export function createJobObserver(
  metrics: Metrics,
  recorder: Recorder,
  processes: ComposedProcesses['local'],
): JobObserver {
  return {
    accepted: (jobs) => recorder.accepted(jobs),
    claimed: () => processes.claimed(),
    begun: () => processes.begun(),
    leasesLost: (attempts) => metrics.leasesExpired(attempts),
    settled({ job, from, transition, durationMs }) {
      const error = 'error' in transition ? transition.error : null;
      const name = queueOf(job.trigger_type);
      // A run that waits has ended neither its attempt nor its job.
      if (transition.status === 'waiting') return;
      if (from === 'active') metrics.attemptEnded(name, durationMs, error?.code ?? null);
      if (transition.status !== 'queued') recorder.ended(job, transition.status, durationMs);
      if (transition.status === 'completed' || transition.status === 'failed') {
        metrics.jobEnded(name, transition.status);
      }
    },
  };
}

/** Counts deliveries for `/metrics`. */
export function createDeliveryObserver(metrics: Metrics): SettleDeps['observe'] {
  return ({ status, isAccepted, tookMs }) => {
    metrics.attemptEnded('webhooks', tookMs, isAccepted ? null : 'upstream_unavailable');
    if (status === 'delivered') metrics.jobEnded('webhooks', 'completed');
    if (status === 'failed') metrics.jobEnded('webhooks', 'failed');
  };
}
