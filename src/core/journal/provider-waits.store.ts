/** The queries on runs that wait for a provider of models. */
import { type SqlBool, sql } from 'kysely';
import { allRows, firstRow } from '../../adapters/database/statement.ts';

const isOpen = sql<SqlBool>`kind = 'provider' and job_steps.status = 'waiting'`;

/** What a job waits for, and until when; the first where it waits for several. */
export const findProviderOfJob = firstRow<{ job_id: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select(['name', 'due_at'])
    .where('job_id', '=', p('job_id'))
    .where(isOpen)
    .orderBy('n')
    .limit(1),
);

/** For which providers unloaded runs wait, of an organization or of all where it is null; of `limit` waits. */
export const countProviderWaits = allRows<{ organization_id: string | null; limit: number }>()(
  (db, p) => {
    const open = db
      .selectFrom('job_steps')
      .innerJoin('jobs', 'jobs.id', 'job_steps.job_id')
      .select(['job_steps.name as waits_for', 'job_steps.due_at as next_at'])
      .where(isOpen)
      .where('jobs.status', '=', sql.lit('waiting'))
      .where(
        // PostgreSQL knows no type of a value that is compared with nothing else.
        sql<SqlBool>`(cast(${p('organization_id')} as text) is null or jobs.organization_id = ${p('organization_id')})`,
      )
      .limit(p('limit'))
      .as('open');
    return db
      .selectFrom(open)
      .select((eb) => [
        'waits_for',
        eb.fn.countAll<number>().as('runs'),
        eb.fn.min<number>('next_at').as('next_at'),
      ])
      .groupBy('waits_for')
      .orderBy('waits_for');
  },
);
