/**
 * The places at gates, the jobs that are held there, and the calls of running jobs that wait. A transaction locks gates before
 * it counts their places, always in one order and after the jobs that it locks; held jobs that others have locked it leaves
 * out, so it waits for no lock meanwhile.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Dialect, Handle, Transaction } from '../../adapters/database/database.ts';
import { idIn, idInLocked, isIn } from '../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf, statement } from '../../adapters/database/statement.ts';
import type { PlacesTable } from '../../adapters/database/tables.ts';
import { hintedColumns } from './jobs.store.ts';

/** Any number that no other use of such locks adds. */
const lockSpace = sql.lit(7_301);

const lock = statement<{ names: readonly string[] }>()((db, p) => {
  const query = sql`select pg_advisory_xact_lock(number) from (
    select distinct hashtextextended(name, ${lockSpace}) as number
    from json_array_elements_text(${listOf(p, 'names')}::json) as name order by number) as numbers`;
  return { compile: () => query.compile(db) };
});

/** Locks gates until the transaction ends. */
export async function lockGates(tx: Transaction, names: readonly string[]): Promise<void> {
  // SQLite has only one writer at a time.
  if (tx.dialect === 'postgres' && names.length > 0) await tx.each(lock, [{ names }]);
}

/** How many places of each of the gates are taken; gates without one have no row. */
export const countPlaces = allRows<{ names: readonly string[] }>()((db, p, dialect) =>
  db
    .selectFrom('places')
    .select((eb) => ['gate', eb.fn.countAll<number>().as('taken')])
    .where(isIn(dialect, sql.ref('gate'), listOf(p, 'names')))
    .where('is_held', '=', sql.lit(1))
    .groupBy('gate'),
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

type Call = Pick<PlacesTable, 'job_id' | 'n'>;

/** The places that a call has, and where it waits. */
export const listPlacesOfCall = allRows<Call, Transaction>()((db, p) =>
  db
    .selectFrom('places')
    .select(['gate', 'is_held'])
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

const forgetCall = statement<Call>()((db, p) =>
  db.deleteFrom('places').where('job_id', '=', p('job_id')).where('n', '=', p('n')),
);

export function forgetPlacesOfCall(tx: Transaction, call: Call): Promise<void> {
  return tx.each(forgetCall, [call]);
}

/** Records that a claim may have places; undefined where it no longer holds its job. */
export const markGated = firstRow<{ id: string; epoch: number }, Transaction>()((db, p) =>
  db
    .updateTable('jobs')
    .set({ gated: 1 })
    .where('id', '=', p('id'))
    .where('epoch', '=', p('epoch'))
    .where('status', '=', sql.lit('active'))
    .returning('id'),
);

const mark = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({ gated: 1 })
    .where(idIn(dialect, listOf(p, 'ids'))),
);

/** The same for jobs that the transaction has locked. */
export function markAllGated(tx: Transaction, ids: readonly string[]): Promise<void> {
  return tx.each(mark, [{ ids }]);
}

/** The skill of a job: `category/version/name`. */
const skillOfJob: RawBuilder<string> = sql<string>`skill_category || '/' || skill_version || '/' || skill_name`;

/** Whether a job may have gates: its skill is one of these, or an operator has set one of `settableGates`. */
export function mayHaveGates(dialect: Dialect, skills: RawBuilder<string>): RawBuilder<SqlBool> {
  return sql<SqlBool>`(${isIn(dialect, skillOfJob, skills)} or exists (
    select 1 from gate_settings where name in (
      'pause of organization = ' || organization_id,
      'pause of ' || ${skillOfJob},
      'pause of agent queue = ' || organization_id || ' ' || agent_id,
      'max_concurrency of organization = ' || organization_id,
      'max_concurrency of agent = ' || organization_id || ' ' || agent_id,
      'max_concurrency of API key = ' || api_key_id
    )))`;
}

/** What the gates of jobs that wait for their turn depend on. */
export const listGatedWorks = allRows<
  { ids: readonly string[]; skills: readonly string[] },
  Transaction
>()((db, p, dialect) =>
  db
    .selectFrom('jobs')
    .select([
      'id',
      'organization_id',
      'agent_id',
      'api_key_id',
      'user_id',
      'skill_category',
      'skill_name',
      'skill_version',
      'concurrency_key',
      'gated',
    ])
    .where(idIn(dialect, listOf(p, 'ids')))
    .where(sql<boolean>`status in ('queued', 'waiting')`)
    .where('held_by', 'is', null)
    .where(mayHaveGates(dialect, listOf(p, 'skills'))),
);

const hold = statement<{ ids: readonly string[]; gate: string }>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({ held_by: p('gate'), gated: 1 })
    .where(
      idInLocked(
        dialect,
        listOf(p, 'ids'),
        'jobs',
        sql<boolean>`status in ('queued', 'waiting') and held_by is null`,
        true,
      ),
    ),
);

/** Holds jobs at a gate, but those that another transaction has locked. */
export function holdAt(tx: Transaction, gate: string, ids: readonly string[]): Promise<void> {
  return tx.each(hold, [{ gate, ids }]);
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

/** The next organization behind another one of which jobs are held at a gate. */
export const findHeldOrganization = firstRow<{ gate: string; after: string }, Transaction>()(
  (db, p) =>
    db
      .selectFrom('jobs')
      .select('organization_id')
      .where('held_by', '=', p('gate'))
      .where('organization_id', '>', p('after'))
      .orderBy('organization_id')
      .limit(1),
);

/** Lets the next jobs of an organization go that a gate holds, of a priority or lower ones. */
export const letGo = allRows<
  { gate: string; organization_id: string; priority: number; limit: number },
  Transaction
>()((db, p, dialect) => {
  const next = sql`select id from jobs where held_by = ${p('gate')}
    and organization_id = ${p('organization_id')} and priority >= ${p('priority')}
    order by priority, id limit ${p('limit')}`;
  return db
    .updateTable('jobs')
    .set({ held_by: null })
    .where(
      dialect === 'sqlite'
        ? sql<boolean>`id in (${next})`
        : sql<boolean>`id = any (array(${next} for update skip locked))`,
    )
    .returning([...hintedColumns, 'epoch']);
});

const nextCall = firstRow<{ gate: string }, Transaction>()((db, p) =>
  db
    .selectFrom('places')
    .select(['job_id', 'n', 'organization_id'])
    .where('gate', '=', p('gate'))
    .where('is_held', '=', sql.lit(0))
    .orderBy('since')
    .limit(1),
);

const give = statement<Call & { gate: string }>()((db, p) =>
  db
    .updateTable('places')
    .set({ is_held: 1 })
    .where('gate', '=', p('gate'))
    .where('job_id', '=', p('job_id'))
    .where('n', '=', p('n')),
);

/** Gives the place of a gate to the call that has waited the longest; undefined where none waits. */
export async function giveToCall(tx: Transaction, gate: string) {
  const call = await nextCall(tx, { gate });
  if (call !== undefined) await tx.each(give, [{ gate, job_id: call.job_id, n: call.n }]);
  return call;
}

/** Reads how gates stand. */
export async function usesOf(db: Handle, names: readonly string[]) {
  const counts = await countPlaces(db, { names });
  const open = new Set((await findGates(db, { names })).map(({ name }) => name));
  const taken = new Map(counts.map((row) => [row.gate, Number(row.taken)]));
  return new Map(
    names.map((name) => [name, { taken: taken.get(name) ?? 0, isContested: open.has(name) }]),
  );
}
