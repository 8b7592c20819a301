/** Finds and locks the scheduled job of a request, and cancels its runs. */
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import type { Settler } from '../../core/jobs/settle.ts';
import { notFound, PlatformError } from '../../kernel/errors.ts';
import { isId } from '../../kernel/ids.ts';
import { findJobsGoingOn, forbidRetries } from './runs.store.ts';
import { findScheduledJob, lockScheduledJob, type ScheduledJobRow } from './schedules.store.ts';

/** The organization's scheduled job, or `404 not_found`. */
export async function readScheduledJob(
  db: Handle,
  organizationId: string,
  id: string,
): Promise<ScheduledJobRow> {
  return found(isId(id) ? await findScheduledJob(db, organizationId, id) : undefined);
}

/** Like `readScheduledJob`, and locks the row until the transaction ends. */
export async function lockRow(
  tx: Transaction,
  organizationId: string,
  id: string,
): Promise<ScheduledJobRow> {
  return found(isId(id) ? await lockScheduledJob(tx, organizationId, id) : undefined);
}

function found(row: ScheduledJobRow | undefined): ScheduledJobRow {
  if (row === undefined) throw notFound('Scheduled job');
  return row;
}

/** `409 conflict`: an agent has one scheduled job for each skill, cron expression and time zone. */
export function duplicate(): PlatformError {
  return new PlatformError(
    'conflict',
    'There is a scheduled job of this agent, skill, cron expression and time zone already',
  );
}

/** Cancels the queued runs of a locked scheduled job; its active runs get no further attempt. */
export async function stopRuns(
  tx: Transaction,
  settler: Settler,
  scheduledJobId: string,
): Promise<void> {
  const jobIds = await findJobsGoingOn(tx, scheduledJobId);
  if (jobIds.length === 0) return;
  await settler.cancelQueued(tx, jobIds);
  await forbidRetries(tx, { scheduled_job_id: scheduledJobId });
}
