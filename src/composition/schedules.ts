import type { Agents } from '../agents/agents.ts';
import type { ApiKeys } from '../api-keys/api-keys.ts';
import type { Accept } from '../jobs/accept.ts';
import type { Jobs } from '../jobs/jobs.ts';
import { createSchedules } from '../schedules/schedules.ts';
import { createTick } from '../schedules/tick.ts';
import type { SkillRegistry } from '../skills/registry.ts';
import { budgetsOfScheduledJob } from '../usage/budgets.ts';
import type { Foundation } from './parts.ts';

/** What schedules need of other slices. */
export interface SchedulesDeps {
  readonly agents: Agents;
  readonly apiKeys: ApiKeys;
  readonly skills: SkillRegistry;
  readonly accept: Accept;
  readonly jobs: Jobs;
}

/** Scheduled jobs and their tick. `max` is how many scheduled jobs an organization may have. */
export function composeSchedules(
  base: Pick<Foundation, 'database' | 'clock' | 'log'>,
  deps: SchedulesDeps,
  max = Number.POSITIVE_INFINITY,
) {
  const schedules = createSchedules({
    ...base,
    ...deps,
    max,
    removeDependents: budgetsOfScheduledJob.remove,
  });
  return { schedules, tick: createTick({ ...base, ...deps }) };
}
