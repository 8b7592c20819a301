/** Which organizations have jobs in the queues. Each query reads a bounded number of rows by an index. */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Handle } from '../../../adapters/database/database.ts';
import { givenIds, queued } from './queued-jobs.store.ts';

/** Organizations with queued jobs that are looked at, in the order of their ids. */
const walkMax = 1_000;
/** Rows of jobs that are read for further organizations: those due the longest, those under way, those that wait. */
const rowsMax = 1_000;
/** The due jobs of each of them are counted to here. */
const dueMax = 100;

export interface BusyOrganization {
  readonly id: string;
  /** Due queued jobs, counted to 100. */
  readonly due: number;
  /** When the first of its queued jobs begins or is due. */
  readonly first: number | null;
  /** Jobs under way, of those that were read. */
  readonly running: number;
}

/** Steps in the index of queued jobs from one organization to the next. */
async function walkQueued({ kysely }: Handle): Promise<string[]> {
  const next = (behind: RawBuilder<unknown>) => sql`(select organization_id from jobs
    where ${queued} and organization_id > ${behind} order by organization_id limit 1)`;
  const { rows } = await sql<{ id: string }>`with recursive walk(id, steps) as (
      select ${next(sql`''`)}, 1
      union all
      select ${next(sql`walk.id`)}, steps + 1 from walk where walk.id is not null and steps < ${walkMax}
    ) select id from walk where id is not null`.execute(kysely);
  return rows.map(({ id }) => id);
}

/** How many of the first jobs in a status are of each organization. */
async function countFirst(
  { kysely }: Handle,
  among: RawBuilder<SqlBool>,
): Promise<Map<string, number>> {
  const { rows } = await sql<{ id: string; n: number }>`select organization_id as id, count(*) as n
    from (select organization_id from jobs where ${among} order by due_at limit ${rowsMax}) as found
    group by organization_id`.execute(kysely);
  return new Map(rows.map(({ id, n }) => [id, Number(n)]));
}

/** Organizations with jobs that have not ended, as far as these rows were read. */
export async function findBusyOrganizations(db: Handle, now: number): Promise<BusyOrganization[]> {
  const [walked, longestDue, active, suspended] = await Promise.all([
    walkQueued(db),
    countFirst(db, sql`status = 'queued' and due_at <= ${now}`),
    countFirst(db, sql`status = 'active' and due_at is not null`),
    countFirst(db, sql`status = 'waiting' and due_at is not null`),
  ]);
  const ids = new Set([
    ...walked,
    ...[longestDue, active, suspended].flatMap((of) => [...of.keys()]),
  ]);
  const due = sql`select run_at from jobs
    where organization_id = asked.id and ${queued} and run_at <= ${now} order by run_at limit ${dueMax}`;
  const { rows } = await sql<{ id: string; due: number; first: number | null }>`select asked.id,
      (select count(*) from (${due}) as counted) as due,
      (select run_at from jobs where organization_id = asked.id and ${queued}
        order by run_at limit 1) as first
    from ${givenIds(db, [...ids])} as asked`.execute(db.kysely);
  return rows.map((row) => ({
    id: row.id,
    due: Number(row.due),
    first: row.first === null ? null : Number(row.first),
    running: active.get(row.id) ?? 0,
  }));
}
