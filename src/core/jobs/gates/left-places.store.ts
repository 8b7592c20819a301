/** What the sweep of gates searches for: places that are not used, and calls that wait for long. */
import { sql } from 'kysely';
import { isIn } from '../../../adapters/database/ids-in.ts';
import { allRows, listOf } from '../../../adapters/database/statement.ts';

/**
 * Places at the gates that jobs have had since before one id, or after the other, and that no claim has used: while work of
 * others waits there, or whose jobs are not due.
 */
export const listUnclaimed = allRows<{
  names: readonly string[];
  before: string;
  after: string;
  due_by: number;
  limit: number;
}>()((db, p, dialect) =>
  db
    .selectFrom('places')
    .innerJoin('jobs', 'jobs.id', 'places.job_id')
    .select(['places.gate', 'places.job_id', 'places.organization_id'])
    .where(isIn(dialect, sql.ref('places.gate'), listOf(p, 'names')))
    .where('places.is_held', '=', sql.lit(1))
    .where('places.n', '=', sql.lit(0))
    .where(sql<boolean>`jobs.status in ('queued', 'waiting') and jobs.held_by is null`)
    .where(
      // Ids of later on are of before the clock was set back.
      sql<boolean>`(places.since < ${p('before')} or places.since > ${p('after')})`,
    )
    .where(
      sql<boolean>`(jobs.due_at > ${p('due_by')}
        or exists (select 1 from jobs as other where other.held_by = places.gate
          and other.organization_id < places.organization_id)
        or exists (select 1 from jobs as other where other.held_by = places.gate
          and other.organization_id > places.organization_id)
        or exists (select 1 from places as call where call.gate = places.gate and call.is_held = 0))`,
    )
    .limit(p('limit')),
);

const callColumns = ['job_id', 'n', 'gate', 'within_calls', 'since'] as const;

/** Calls that have waited since before one id, or after the other, in the order in which they began, behind one of them. */
export const listWaitingCalls = allRows<{
  before: string;
  after: string;
  behind: string;
  limit: number;
}>()((db, p) =>
  db
    .selectFrom('places')
    .select(callColumns)
    .where('is_held', '=', sql.lit(0))
    .where(sql<boolean>`(since < ${p('before')} or since > ${p('after')})`)
    .where('since', '>', p('behind'))
    .orderBy('since')
    .limit(p('limit')),
);

/** Those of these jobs. */
export const listWaitingCallsOf = allRows<{
  ids: readonly string[];
  before: string;
  after: string;
}>()((db, p, dialect) =>
  db
    .selectFrom('places')
    .select(callColumns)
    .where(isIn(dialect, sql.ref('job_id'), listOf(p, 'ids')))
    .where('is_held', '=', sql.lit(0))
    .where(sql<boolean>`(since < ${p('before')} or since > ${p('after')})`),
);
