/** The queries on jobs together with the jobs that they have started. */
import { type RawBuilder, sql } from 'kysely';
import type { Dialect, Handle, Transaction } from '../database/database.ts';
import { idInLocked, idsParam } from '../database/ids-in.ts';
import { statement } from '../database/statement.ts';
import type { JobStatus } from '../database/tables.ts';

/** The jobs, with all unended jobs below them: `family(id)`. */
function family(dialect: Dialect, ids: readonly string[]): RawBuilder<unknown> {
  const given =
    dialect === 'sqlite'
      ? sql`select value from json_each(${idsParam(ids)})`
      : sql`select json_array_elements_text(${idsParam(ids)}::json)`;
  // Each way keeps the planner from walking through all jobs: the children of a job are looked up.
  const children =
    dialect === 'sqlite'
      ? sql`cross join jobs as child on child.parent_job_id = family.id and child.due_at is not null`
      : sql`cross join lateral (
          select id from jobs where parent_job_id = family.id and due_at is not null order by id
        ) as child`;
  return sql`with recursive family(id) as (${given} union select child.id from family ${children})`;
}

/**
 * Locks the jobs together with their parents and the unended jobs below them, in the order of their ids:
 * whatever ends a job of a family may change the others.
 */
export async function holdFamilies(tx: Transaction, ids: readonly string[]): Promise<void> {
  // SQLite has only one writer at a time.
  if (tx.dialect === 'sqlite') return;
  const parents = sql`select parent_job_id from jobs where id = any (array(
    select json_array_elements_text(${idsParam(ids)}::json)))`;
  await sql`${family(tx.dialect, ids)} select id from jobs
    where id = any (array(select id from family union ${parents})) order by id for update`.execute(
    tx.kysely,
  );
}

/** The unended jobs below the jobs, in the order of their ids. */
export async function listDescendants(db: Handle, ids: readonly string[]) {
  const among =
    db.dialect === 'sqlite'
      ? sql`id in (select id from family)`
      : sql`id = any (array(select id from family))`;
  const jobs = sql<{ id: string; status: JobStatus }>`${family(db.dialect, ids)}
    select id, status from jobs where ${among} and due_at is not null order by id`;
  const { rows } = await jobs.execute(db.kysely);
  const given = new Set(ids);
  return rows.filter(({ id }) => !given.has(id));
}

const stop = statement<{ ids: string; now: number }>()((db, p, dialect) =>
  db
    .updateTable('jobs')
    .set({ cancel_requested_at: p('now') })
    .where(idInLocked(dialect, p('ids'), 'jobs', sql<boolean>`status = 'active'`))
    .returning('id'),
);

/** Marks the active ones of the jobs as to be stopped, and returns them. */
export function requestCancellations(tx: Transaction, ids: readonly string[], now: number) {
  return tx.all(stop, { ids: idsParam(ids), now });
}
