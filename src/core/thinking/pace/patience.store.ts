/** The query on the waits of runs for providers. */
import { firstRow } from '../../../adapters/database/statement.ts';

/** When a wait of a job began. */
export const findProviderWait = firstRow<{ job_id: string; key: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select('started_at')
    .where('job_id', '=', p('job_id'))
    .where('generation', '=', p('key'))
    .orderBy('n')
    .limit(1),
);
