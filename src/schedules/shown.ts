/** Scheduled jobs and their runs in the words of the API (specification: Scheduled job). */
import { timestamp, timestampOrNull } from '../kernel/clock.ts';
import { nextMatch, parseCron } from './cron.ts';
import type { ListedRun } from './runs.store.ts';
import type { ListedScheduledJob, ScheduledJobRow } from './schedules.store.ts';

/** As lists show it. */
export function listedScheduledJob(row: ListedScheduledJob, now: number) {
  return {
    id: row.id,
    agent_id: row.agent_id,
    skill_category: row.skill_category,
    skill_name: row.skill_name,
    skill_version: row.skill_version,
    cron_expression: row.cron_expression,
    enabled: row.enabled === 1,
    last_run_at: timestampOrNull(row.last_run_at),
    last_run_status: row.last_run_status,
    next_run_at: timestamp(nextRunAt(row, now)),
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
  };
}

/**
 * The next match, whatever is stored: a disabled one is not moved on, one that is due still has its
 * old slot, and one that was planned while the clock was ahead has a slot that is too late.
 */
function nextRunAt({ cron_expression }: ListedScheduledJob, now: number): number {
  return nextMatch(parseCron(cron_expression), now);
}

/** As the answer to its creation shows it. */
export function createdScheduledJob(row: ScheduledJobRow, now: number) {
  return {
    ...listedScheduledJob(row, now),
    input: JSON.parse(row.input) as Record<string, unknown>,
  };
}

/** As single retrieval shows it. */
export function shownScheduledJob(row: ScheduledJobRow, now: number) {
  return { ...createdScheduledJob(row, now), last_run_job_id: row.last_run_job_id };
}

/** An entry of the runs of a scheduled job. */
export function shownRun(run: ListedRun) {
  return {
    id: run.id,
    scheduled_for: timestamp(run.scheduled_for),
    outcome: run.outcome,
    slots: run.slots,
    message: run.message,
    job_id: run.job_id,
    status: run.status,
    created_at: timestamp(run.created_at),
  };
}
