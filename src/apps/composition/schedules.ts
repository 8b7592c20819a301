import { budgetsOfScheduledJob } from '../../core/usage/budgets.ts';
import { createSchedules, type ScheduleDeps } from '../../platform/schedules/schedules.ts';
import { createTick } from '../../platform/schedules/tick.ts';
import type { Foundation } from './parts.ts';

/** Scheduled jobs and their tick. `max` is how many scheduled jobs an organization may have. */
export function composeSchedules(
  base: Pick<Foundation, 'database' | 'clock' | 'log'>,
  slices: ScheduleDeps['slices'],
  max = Number.POSITIVE_INFINITY,
) {
  const { database, clock } = base;
  const removeDependents = budgetsOfScheduledJob.remove;
  return {
    schedules: createSchedules({ database, clock, slices, max, removeDependents }),
    tick: createTick({ ...base, slices, accept: slices.accept }),
  };
}
