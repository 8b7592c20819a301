/** The queries of the retention of events. */
import { allRows } from '../../adapters/database/statement.ts';

const jobsIn = (table: 'event_positions' | 'received_events') =>
  allRows<{ after: string; limit: number }>()((db, p) =>
    db
      .selectFrom(table)
      .select((eb) => [
        eb.ref('job_id').$castTo<string>().as('job_id'),
        eb
          .selectFrom('jobs')
          .select('due_at')
          .whereRef('jobs.id', '=', `${table}.job_id`)
          .as('due_at'),
      ])
      .where('job_id', 'is not', null)
      .where('job_id', '>', p('after'))
      .groupBy('job_id')
      .orderBy('job_id')
      .limit(p('limit')),
  );

/** Jobs after one, in the order of their ids; `due_at` is null for those that have ended. */
export const pagesOfJobs = [
  // Jobs that got events, and jobs for which alone events are stored.
  jobsIn('event_positions'),
  jobsIn('received_events'),
];
