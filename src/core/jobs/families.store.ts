/** The queries on jobs together with the jobs that they have started. */

import { type RawBuilder, sql } from 'kysely';
import type { Dialect, Handle, Transaction } from '../../adapters/database/database.ts';
import { idInLocked, isIn, listValue } from '../../adapters/database/ids-in.ts';
import { allRows, firstRow, listOf, statement } from '../../adapters/database/statement.ts';
import type { FamilyCancellationsTable, JobStatus } from '../../adapters/database/tables.ts';

/** Jobs of a family that are read together. */
const familyMax = 1_000;
/** Jobs below others that one transaction locks and cancels. */
export const descendantsMax = 200;

const isLeft = sql`due_at is not null and cancel_requested_at is null`;

/** The jobs, with the jobs below them that `isMember` allows, by default the unended ones that are not being cancelled: `family(id)`, parents first. */
function family(
  dialect: Dialect,
  ids: readonly string[],
  isMember: RawBuilder<unknown> = isLeft,
): RawBuilder<unknown> {
  const given =
    dialect === 'sqlite'
      ? sql`select value from json_each(${listValue(ids)})`
      : sql`select json_array_elements_text(${listValue(ids)}::json)`;
  // Each way keeps the planner from walking through all jobs: the children of a job are looked up.
  const children =
    dialect === 'sqlite'
      ? sql`cross join jobs as child on child.parent_job_id = family.id and ${isMember}`
      : sql`cross join lateral (
          select id from jobs where parent_job_id = family.id and ${isMember} order by id
        ) as child`;
  return sql`with recursive family(id) as (${given} union select child.id from family ${children})`;
}

/** The ids of a family without those given, one more than a transaction cancels. The rest is not looked up. */
const bounded = (given: readonly string[]) =>
  sql`select id from family limit ${given.length + descendantsMax + 1}`;

/**
 * Locks the jobs together with their parents and the unended jobs below them, in the order of their ids:
 * the end of one job of a family may change the others. Of those below, as many as are cancelled together.
 */
export async function lockFamilies(tx: Transaction, ids: readonly string[]): Promise<void> {
  // SQLite has only one writer at a time.
  if (tx.dialect === 'sqlite') return;
  const parents = sql`select parent_job_id from jobs where id = any (array(
    select json_array_elements_text(${listValue(ids)}::json)))`;
  await sql`${family(tx.dialect, ids)} select id from jobs
    where id = any (array((${bounded(ids)}) union ${parents})) order by id for update`.execute(
    tx.kysely,
  );
}

/** The unended jobs below the jobs, in the order of their ids; at most one more than a transaction cancels. */
export async function listDescendants(db: Handle, ids: readonly string[]) {
  const among =
    db.dialect === 'sqlite' ? sql`id in (${bounded(ids)})` : sql`id = any (array(${bounded(ids)}))`;
  const jobs = sql<{ id: string; status: JobStatus; epoch: number }>`${family(db.dialect, ids)}
    select id, status, epoch from jobs where ${among} and due_at is not null order by id`;
  const { rows } = await jobs.execute(db.kysely);
  const given = new Set(ids);
  return rows.filter(({ id }) => !given.has(id));
}

/** The job and all jobs below it, ended ones too, those above first: up to 1,000. */
export async function listFamily(db: Handle, id: string): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`${family(db.dialect, [id], sql`1 = 1`)}
    select id from family limit ${familyMax}`.execute(db.kysely);
  return rows.map((row) => row.id);
}

/** Marks the active ones of the jobs as to be stopped, and returns them. */
export const requestCancellations = allRows<{ ids: readonly string[]; now: number }, Transaction>()(
  (db, p, dialect) =>
    db
      .updateTable('jobs')
      .set({ cancel_requested_at: p('now') })
      .where(idInLocked(dialect, listOf(p, 'ids'), 'jobs', sql<boolean>`status = 'active'`))
      .returning('id'),
);

const leave = statement<FamilyCancellationsTable>()((db, p) =>
  db
    .insertInto('family_cancellations')
    .values({ job_id: p('job_id') })
    .onConflict((conflict) => conflict.doNothing()),
);

/** Records that jobs below these are left to be cancelled. */
export function leaveCancellations(tx: Transaction, ids: readonly string[]): Promise<void> {
  return tx.each(
    leave,
    ids.toSorted().map((id) => ({ job_id: id })),
  );
}

const left = allRows<{ limit: number }>()((db, p) =>
  db.selectFrom('family_cancellations').select('job_id').orderBy('job_id').limit(p('limit')),
);

/** Jobs below which others are left to be cancelled. */
export async function listCancellations(db: Handle, limit: number): Promise<string[]> {
  return (await left(db, { limit })).map(({ job_id }) => job_id);
}

const finish = statement<{ ids: readonly string[] }>()((db, p, dialect) =>
  db.deleteFrom('family_cancellations').where(isIn(dialect, sql.ref('job_id'), listOf(p, 'ids'))),
);

/** Records that nothing is left below these jobs. */
export function finishCancellations(tx: Transaction, ids: readonly string[]): Promise<void> {
  return tx.each(finish, [{ ids }]);
}

/** The parts of a job that the child which it starts takes over. */
export const findParent = firstRow<{ id: string }, Transaction>()((db, p) =>
  db
    .selectFrom('jobs')
    .select((eb) => [
      'user_id',
      'for_user',
      'depth',
      'priority',
      'concurrency_key',
      'instruction_values',
      eb
        .selectFrom('jobs as child')
        .whereRef('child.parent_job_id', '=', 'jobs.id')
        .select((of) => of.fn.countAll<number>().as('n'))
        .as('children'),
    ])
    .where('id', '=', p('id')),
);
