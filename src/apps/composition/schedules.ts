import type { Context } from '../../core/context/context.ts';
import { budgetsOfScheduledJob } from '../../core/usage/budgets.ts';
import { createSchedules, type ScheduleDeps } from '../../platform/schedules/schedules.ts';
import { createTick } from '../../platform/schedules/tick.ts';

/** Scheduled jobs and their tick. `max` is how many scheduled jobs an organization may have. */
export function composeSchedules(
  base: Pick<Context, 'database' | 'clock' | 'log'>,
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
