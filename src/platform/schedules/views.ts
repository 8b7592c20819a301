/** Scheduled jobs and their runs as the API returns them (specification: Scheduled job). */
import { timestamp, timestampOrNull } from '../../kernel/clock.ts';
import { shownTimezone } from './cron-fields.ts';
import type { ListedRun } from './runs.store.ts';
import type { ListedScheduledJob, ScheduledJobRow } from './schedules.store.ts';
import { nextSlot, parseStoredTimetable } from './timetable.ts';

/** An entry of the list of scheduled jobs. */
export function scheduledJobSummary(row: ListedScheduledJob, now: number) {
  return {
    id: row.id,
    agent_id: row.agent_id,
    skill_category: row.skill_category,
    skill_name: row.skill_name,
    skill_version: row.skill_version,
    cron_expression: row.cron_expression,
    ...shownTimezone(row),
    ...(row.priority !== null && { priority: row.priority }),
    enabled: row.enabled === 1,
    last_run_at: timestampOrNull(row.last_run_at),
    last_run_status: row.last_run_status,
    next_run_at: timestamp(nextRunAt(row, now)),
    created_at: timestamp(row.created_at),
    updated_at: timestamp(row.updated_at),
  };
}

/**
 * The next match from now, not the stored slot: that of a disabled scheduled job is out of date, a due
 * one still has its old slot, and one planned while the clock was ahead has a slot that is too late.
 */
function nextRunAt(row: ListedScheduledJob, now: number): number {
  const timetable = parseStoredTimetable(row);
  return timetable === null ? row.next_run_at : nextSlot(timetable, now);
}

/** The response to a creation. */
export function createdScheduledJobView(row: ScheduledJobRow, now: number) {
  return {
    ...scheduledJobSummary(row, now),
    input: JSON.parse(row.input) as Record<string, unknown>,
  };
}

/** The response to single retrieval. */
export function scheduledJobView(row: ScheduledJobRow, now: number) {
  return { ...createdScheduledJobView(row, now), last_run_job_id: row.last_run_job_id };
}

/** An entry of the list of a scheduled job's runs. */
export function scheduledRunView(run: ListedRun) {
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
