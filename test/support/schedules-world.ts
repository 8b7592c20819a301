/** The verbs of `src/platform/schedules` over the jobs of `jobs-world.ts`; the test says when a tick comes. */

import type { Database } from '../../src/adapters/database/database.ts';
import type { ScheduledRunsTable } from '../../src/adapters/database/tables.ts';
import { createLogger } from '../../src/kernel/log.ts';
import type { NewScheduledJob } from '../../src/platform/schedules/schedules.schemas.ts';
import { Schedules } from '../../src/platform/schedules/schedules.ts';
import { Tick } from '../../src/platform/schedules/tick.ts';
import { contextOf } from './context.ts';
import type { Engine } from './databases.ts';
import { type JobsWorld, jobsWorld } from './jobs-world.ts';
import type { ManualClock } from './manual-clock.ts';

export interface SchedulesWorld extends JobsWorld {
  readonly schedules: Schedules;
  /** The same verbs on a database of the test's own making. */
  schedulesOn(database: Database): Schedules;
  tick(): Promise<number>;
  /** What the tick logged. */
  readonly logged: Record<string, unknown>[];
  /** Creates a scheduled job, minutely unless `fields` say otherwise; its id. */
  schedule(fields?: Partial<NewScheduledJob>): Promise<string>;
  /** What became of the slots of a scheduled job, oldest first. */
  slots(id: string): Promise<Pick<ScheduledRunsTable, 'slot' | 'outcome' | 'slots' | 'job_id'>[]>;
  /** Its outcomes alone. */
  outcomes(id: string): Promise<string[]>;
  /** The job of its last run. */
  lastJob(id: string): Promise<string>;
}

export async function schedulesWorld(
  engine: Engine,
  options: { clock?: ManualClock; database?: Database; freeSlots?: () => number } = {},
): Promise<SchedulesWorld> {
  const world = await jobsWorld(engine, options);
  const { database, caller } = world;
  const logged: Record<string, unknown>[] = [];
  const log = createLogger('info', { write: (line) => void logged.push(JSON.parse(line)) });
  const { clock } = world;
  const schedulesOn = (on: Database) => new Schedules(contextOf({ clock, database: on }), world);
  const schedules = schedulesOn(database);
  const tick = new Tick(contextOf({ clock, log, database }), world);

  const slots: SchedulesWorld['slots'] = (id) =>
    database.read.kysely
      .selectFrom('scheduled_runs')
      .select(['slot', 'outcome', 'slots', 'job_id'])
      .where('scheduled_job_id', '=', id)
      .orderBy('id')
      .execute();
  return {
    ...world,
    schedules,
    schedulesOn,
    tick: () => tick.run(),
    logged,
    slots,
    outcomes: async (id) => (await slots(id)).map(({ outcome }) => outcome),

    async schedule(fields = {}) {
      const created = await schedules.create(caller, {
        agent_id: 'default',
        skill_category: 'test',
        skill_name: 'echo',
        cron_expression: '* * * * *',
        ...fields,
      });
      return created.id;
    },

    async lastJob(id) {
      const { last_run_job_id } = await schedules.get('default', id);
      if (last_run_job_id === null) throw new Error('It has not run yet.');
      return last_run_job_id;
    },
  };
}
