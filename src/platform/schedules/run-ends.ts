/**
 * Records the end of a scheduled run: its events and the schedule's last run (see `ScheduledRuns`). If the
 * scheduled job was deleted meanwhile, it records only the events.
 */
import { envelopeOf, type NewEvent, runData } from '../../core/events/events.ts';
import { appendEvents } from '../../core/events/outbox.ts';
import type { EndedRun, ScheduledRuns } from '../../core/jobs/scheduled-runs.ts';
import { timestamp } from '../../kernel/clock.ts';
import { endLastRuns } from './last-runs.store.ts';
import { endRunsOfJobs, findScheduledJobOf, findUnwanted } from './runs.store.ts';

export const scheduledRuns: ScheduledRuns = {
  scheduledJobOf: findScheduledJobOf,

  async unwanted(tx, jobIds) {
    return new Set(await findUnwanted(tx, jobIds));
  },

  async ended(tx, ended, now) {
    if (ended.length === 0) return;
    const runs = await endRunsOfJobs(tx, { ids: ended.map(({ job }) => job.id) });
    const byJob = new Map(runs.map((run) => [run.job_id, run]));
    const known = ended.flatMap((end) => {
      const run = byJob.get(end.job.id);
      return run === undefined ? [] : [{ end, run }];
    });
    await appendEvents(
      tx,
      known.flatMap(({ end, run }) => eventsOf(end, run)),
      now,
    );
    await endLastRuns(
      tx,
      known.map(({ end, run }) => ({
        scheduled_job_id: run.scheduled_job_id,
        job_id: end.job.id,
        status: end.status === 'completed' ? 'completed' : 'failed',
      })),
    );
  },
};

/** The events of an ended run; none for a cancelled run, which neither completed nor failed. */
function eventsOf(
  { job, status, error, durationMs }: EndedRun,
  run: { scheduled_job_id: string; scheduled_for: number },
): NewEvent[] {
  if (status === 'cancelled') return [];
  const envelope = envelopeOf(job);
  const data = {
    scheduled_job_id: run.scheduled_job_id,
    ...runData(job),
    scheduled_for: timestamp(run.scheduled_for),
  };
  if (error === null) {
    const completed = { ...data, duration_ms: durationMs };
    return [{ ...envelope, type: 'scheduled_job.completed', data: completed }];
  }
  return [{ ...envelope, type: 'scheduled_job.failed', data: { ...data, error } }];
}
