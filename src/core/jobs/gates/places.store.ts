/**
 * The places at gates, and the calls of running jobs that wait. A transaction locks gates before it counts their places, always
 * in one order and after the jobs that it locks.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Transaction } from '../../../adapters/database/database.ts';
import { isIn } from '../../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf, statement } from '../../../adapters/database/statement.ts';
import type { PlacesTable } from '../../../adapters/database/tables.ts';

/** Any number that no other use of such locks adds. */
const lockSpace = sql.lit(7_301);

const lock = statement<{ locks: readonly string[] }>()((db, p) => {
  const query = sql`select pg_advisory_xact_lock(number) from (
    select distinct hashtextextended(name, ${lockSpace}) as number
    from json_array_elements_text(${listOf(p, 'locks')}::json) as name order by number) as numbers`;
  return { compile: () => query.compile(db) };
});

/** Takes locks of PostgreSQL until the transaction ends. */
export function takeLocks(tx: Transaction, locks: readonly string[]): Promise<void> {
  return tx.each(lock, [{ locks }]);
}

/** Takes those of the locks that no other transaction has; whether it has all of them now. */
export const tryLocks = firstRow<{ locks: readonly string[] }, Transaction>()((db, p) =>
  db.selectNoFrom(
    sql<boolean>`(select bool_and(pg_try_advisory_xact_lock(hashtextextended(name, ${lockSpace})))
      from json_array_elements_text(${listOf(p, 'locks')}::json) as name)`.as('are_taken'),
  ),
);

/** How many places of each of the gates are taken, and how many works it has passed over; gates without any have no row. */
export const countPlaces = allRows<{ names: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('places')
    .select([
      'gate',
      sql<number>`count(*) filter (where is_held = 1)`.as('taken'),
      sql<number>`count(*) filter (where is_held = -2)`.as('passed_over'),
    ])
    .where(isIn(dialect, sql.ref('gate'), listOf(p, 'names')))
    .where(sql<boolean>`is_held in (1, -2)`)
    .groupBy('gate'),
);

/** Places that are taken at the gates. */
export const listTaken = allRows<{ names: readonly string[]; limit: number }>()((db, p, dialect) =>
  db
    .selectFrom('places')
    .select(['gate', 'job_id', 'n'])
    .where(isIn(dialect, sql.ref('gate'), listOf(p, 'names')))
    .where('is_held', '=', sql.lit(1))
    .limit(p('limit')),
);

/** Those of the gates at which work waits. */
export const findGates = allRows<{ names: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('gates')
    .select(['name', 'turn', 'last_organization'])
    .where(isIn(dialect, sql.ref('name'), listOf(p, 'names'))),
);

/** The gates behind a name at which work waits. */
export const listGates = allRows<{ after: string; limit: number }>()((db, p) =>
  db
    .selectFrom('gates')
    .select('name')
    .where('name', '>', p('after'))
    .orderBy('name')
    .limit(p('limit')),
);

/** The places of the jobs themselves. */
export const listPlacesOfJobs = allRows<{ ids: readonly string[] }, Transaction>()(
  (db, p, dialect) =>
    db
      .selectFrom('places')
      .select(['gate', 'job_id'])
      .where(isIn(dialect, sql.ref('job_id'), listOf(p, 'ids')))
      .where('n', '=', sql.lit(0)),
);

/** The gates at which the jobs, or their calls, have places or wait. */
export const listGatesOfJobs = allRows<{ ids: readonly string[] }, Transaction>()(
  (db, p, dialect) =>
    db
      .selectFrom('places')
      .select('gate')
      .distinct()
      .where(isIn(dialect, sql.ref('job_id'), listOf(p, 'ids'))),
);

const forget = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db.deleteFrom('places').where(isIn(dialect, sql.ref('job_id'), listOf(p, 'ids'))),
);

/** Gives up all places of jobs. */
export function forgetPlaces(tx: Transaction, ids: readonly string[]): Promise<void> {
  return tx.each(forget, [{ ids }]);
}

const handOver = statement<{ from: string; to: string }>()((db, p) =>
  db
    .updateTable('places')
    .set({ job_id: p('to') })
    .where('job_id', '=', p('from')),
);

/** Gives the places of jobs to others; the transaction has locked their gates. */
export function handPlacesOver(
  tx: Transaction,
  pairs: readonly { readonly from: string; readonly to: string }[],
): Promise<void> {
  return tx.each(handOver, pairs);
}

type Call = Pick<PlacesTable, 'job_id' | 'n'>;

/** The places that a call has, and where it waits. */
export const listPlacesOfCall = allRows<Call, Transaction>()((db, p) =>
  db
    .selectFrom('places')
    .select(['gate', 'is_held'])
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

/** The calls of a running job that have places or wait, each with whether it has them all. */
export const listCalls = allRows<{ job_id: string }>()((db, p) =>
  db
    .selectFrom('places')
    .select((eb) => ['n', eb.fn.min<number>('is_held').as('is_held')])
    .where('job_id', '=', p('job_id'))
    .where('n', '>', sql.lit(0))
    .groupBy('n'),
);

const forgetCall = statement<Call>()((db, p) =>
  db
    .deleteFrom('places')
    .where('job_id', '=', p('job_id'))
    // The latter where gates have passed it over.
    .where(sql<boolean>`n in (${p('n')}, -1 - ${p('n')})`),
);

export function forgetPlacesOfCall(tx: Transaction, call: Call): Promise<void> {
  return tx.each(forgetCall, [call]);
}

const open = statement<{ name: string }>()((db, p) =>
  db
    .insertInto('gates')
    .values({ name: p('name') })
    .onConflict((conflict) => conflict.doNothing()),
);

/** Records that work waits at the gates. */
export function openGates(tx: Transaction, names: readonly string[]): Promise<void> {
  return tx.each(
    open,
    names.toSorted().map((name) => ({ name })),
  );
}

const pass = statement<{ name: string; turn: number; last_organization: string }>()((db, p) =>
  db
    .updateTable('gates')
    .set({ turn: p('turn'), last_organization: p('last_organization') })
    .where('name', '=', p('name')),
);

/** Records whose turn was the last one at a gate. */
export function setTurn(
  tx: Transaction,
  turn: { readonly name: string; readonly turn: number; readonly last_organization: string },
): Promise<void> {
  return tx.each(pass, [turn]);
}

const close = statement<{ name: string }>()((db, p) =>
  db
    .deleteFrom('gates')
    .where('name', '=', p('name'))
    .where(
      sql<boolean>`not exists (select 1 from jobs where held_by = ${p('name')})
        and not exists (select 1 from places where gate = ${p('name')} and is_held = 0)`,
    ),
);

/** Forgets a gate at which nothing waits any more. */
export function closeGate(tx: Transaction, name: string): Promise<void> {
  return tx.each(close, [{ name }]);
}

/**
 * The organization whose turn is next at a gate: the first one behind `after` whose jobs or calls wait there, else the first of
 * all.
 */
export const findNextOrganization = firstRow<{ gate: string; after: string }, Transaction>()(
  (db, p) => {
    const behind = sql`organization_id > ${p('after')}`;
    const first = (round: number, waiting: RawBuilder<unknown>, order: string) =>
      sql`select * from (select organization_id, ${sql.lit(round)} as round from ${waiting}
        order by ${sql.raw(order)} limit 1) as one`;
    const jobs = sql`jobs where held_by = ${p('gate')}`;
    const calls = sql`places where gate = ${p('gate')} and is_held = 0`;
    // By all columns of the index of held jobs, and without the status, which all of them have: else PostgreSQL sorts all that wait, or walks the jobs of an organization from its first one on.
    const rank = 'organization_id, priority, due_at, id';
    const found = sql<{ organization_id: string; round: number }>`(
      ${first(0, sql`${jobs} and ${behind}`, rank)}
      union all ${first(0, sql`${calls} and ${behind}`, 'organization_id')}
      union all ${first(1, jobs, rank)}
      union all ${first(1, calls, 'organization_id')})`.as<'found'>(sql`found`);
    return db
      .selectFrom(found)
      .select('organization_id')
      .orderBy('round')
      .orderBy('organization_id')
      .limit(1);
  },
);

/** The call of an organization that has waited at a gate the longest. */
export const findNextCall = firstRow<{ gate: string; organization_id: string }, Transaction>()(
  (db, p) =>
    db
      .selectFrom('places')
      .select(['job_id', 'n'])
      .where('gate', '=', p('gate'))
      .where('is_held', '=', sql.lit(0))
      .where('organization_id', '=', p('organization_id'))
      .orderBy('since')
      .limit(1),
);

const give = statement<Call>()((db, p) =>
  db
    .updateTable('places')
    .set({ is_held: 1 })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

/** Gives a call the places of all gates that it needs. */
export function giveToCall(tx: Transaction, { job_id, n }: Call): Promise<void> {
  return tx.each(give, [{ job_id, n }]);
}

const move = statement<Call & { gate: string }>()((db, p) =>
  db
    .updateTable('places')
    .set({ is_held: sql<number>`case when gate = ${p('gate')} then 0 else -1 end` })
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

/** Has a call wait at another one of its gates. */
export function moveCall(tx: Transaction, { job_id, n }: Call, gate: string): Promise<void> {
  return tx.each(move, [{ job_id, n, gate }]);
}
