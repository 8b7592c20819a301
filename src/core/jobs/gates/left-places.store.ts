/** What the sweep of gates searches for: places that are not used, calls that wait for long, and what crashes have left. */
import { sql } from 'kysely';
import type { Dialect, Transaction } from '../../../adapters/database/database.ts';
import { idInLocked, isIn } from '../../../adapters/database/ids-in.ts';
import { allRows, listOf, statement } from '../../../adapters/database/statement.ts';
import { waitsForTurn } from './held-jobs.store.ts';

/** Places, and gates that have passed work over, behind that of a job, with the status of their jobs, null where there is no job, and where these are held. */
export const listPlacesBehind = allRows<{ after: string; limit: number }>()((db, p) =>
  db
    .selectFrom('places')
    .leftJoin('jobs', 'jobs.id', 'places.job_id')
    .select(['places.job_id', 'places.is_held', 'jobs.status', 'jobs.held_by'])
    .where('places.job_id', '>', p('after'))
    .orderBy('places.job_id')
    .limit(p('limit')),
);

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

const indexed = (dialect: Dialect) =>
  dialect === 'sqlite' ? sql`jobs indexed by jobs_held_begun` : sql`jobs`;
const isBegun = sql<boolean>`held_by is not null and status not in ('queued', 'waiting')`;

/** Jobs with a gate that have begun or ended: a process of an earlier version claims a job and leaves it. */
export const listBegunHeld = allRows<{ limit: number }>()((db, p, dialect) =>
  db
    .selectFrom(
      sql<{ id: string }>`(select id from ${indexed(dialect)} where ${isBegun})`.as('begun'),
    )
    .select('id')
    .limit(p('limit')),
);

const free = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({ held_by: null })
    .where(idInLocked(dialect, listOf(p, 'ids'), 'jobs', isBegun, true)),
);

/** Has no gate hold these jobs, which have begun or ended. */
export function freeBegun(tx: Transaction, ids: readonly string[]): Promise<void> {
  return tx.each(free, [{ ids }]);
}

/** The gates behind a name that hold jobs. */
export const listGatesOfHeld = allRows<{ after: string; limit: number }>()((db, p, dialect) => {
  const after = dialect === 'sqlite' ? p('after') : sql`${p('after')}::text`;
  const limit = dialect === 'sqlite' ? p('limit') : sql`${p('limit')}::integer`;
  const names = sql<{ name: string }>`(with recursive names(name, steps) as (
      select (select min(held_by) from jobs where held_by > ${after} and ${waitsForTurn}), 1
      union all
      select (select min(held_by) from jobs where held_by > names.name and ${waitsForTurn}), steps + 1
      from names where name is not null and steps < ${limit}
    ) select name from names where name is not null)`.as<'names'>(sql`names`);
  return db.selectFrom(names).select('name');
});
