/** The queries on what runs wait for: providers of models, and the waits of their code. */
import { type SqlBool, sql } from 'kysely';
import { allRows, firstRow } from '../../adapters/database/statement.ts';
import { type WaitKind, waitKinds } from '../../adapters/database/tables.ts';

const isOpen = sql<SqlBool>`kind = 'provider' and job_steps.status = 'waiting'`;

/** What a job waits for, and until when; the last begun where it waits for several. */
export const findOpenWait = firstRow<{ job_id: string }>()((db, p) =>
  db
    .selectFrom('job_steps')
    .select(['kind', 'name', 'due_at'])
    .where('job_id', '=', p('job_id'))
    .where('status', '=', sql.lit('waiting'))
    .where(
      'kind',
      'in',
      waitKinds.map((kind) => sql.lit(kind)),
    )
    .orderBy('n', 'desc')
    .limit(1)
    .$castTo<{ kind: WaitKind; name: string; due_at: number | null }>(),
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
