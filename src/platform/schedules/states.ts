/** The states of a scheduled job, from its `last_run_status`. Data; no I/O. */

/** The statuses of a last run. */
export const lastRunStatuses = ['active', 'completed', 'failed'] as const;

/** `never` is null in the API: it has not run yet. */
type ScheduledJobState = 'never' | (typeof lastRunStatuses)[number];

/**
 * Which states may follow each state.
 * @public A test compares the diagram in docs/schedules.md with it.
 */
export const scheduledJobTransitions: Record<ScheduledJobState, readonly ScheduledJobState[]> = {
  never: ['active'],
  // Active again: run-now while a run is under way.
  active: ['active', 'completed', 'failed'],
  completed: ['active'],
  failed: ['active'],
};
