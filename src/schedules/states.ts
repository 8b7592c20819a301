/** The life of a scheduled job as its `last_run_status` tells it. Data; no I/O. */

/** What a last run can be. */
export const lastRunStatuses = ['active', 'completed', 'failed'] as const;

/** `never` is the null of the wire: it has not run yet. */
type ScheduledJobState = 'never' | (typeof lastRunStatuses)[number];

/**
 * Which states may follow each state.
 * @public The diagram in docs/schedules.md is held to it.
 */
export const scheduledJobTransitions: Record<ScheduledJobState, readonly ScheduledJobState[]> = {
  never: ['active'],
  // Active again: run-now while a run is under way.
  active: ['active', 'completed', 'failed'],
  completed: ['active'],
  failed: ['active'],
};
