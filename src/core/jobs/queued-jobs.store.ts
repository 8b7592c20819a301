/**
 * What waits in the queues of jobs. Counts are those that are kept beside the rows; of the rows themselves each query reads a
 * bounded number, by an index: the longest due and the next ones of each organization.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Handle } from '../../adapters/database/database.ts';
import { listValue } from '../../adapters/database/ids-in.ts';
import type { JobStatus, TriggerType } from '../../adapters/database/tables.ts';
import { dueSince } from './waiting.store.ts';

/** Jobs that begin later are counted to here. */
export const laterMax = 10_000;

/** Whose jobs: of one skill and agent. */
export interface JobKind {
  readonly organization_id: string;
  readonly agent_id: string;
  readonly skill_category: string;
  readonly skill_name: string;
  readonly skill_version: string;
  readonly trigger_type: TriggerType;
}

export interface CountedKind extends JobKind {
  readonly status: JobStatus;
  readonly n: number;
}

/** A job that waits for a slot, or for its time. */
export interface WaitingJob extends JobKind {
  readonly id: string;
  /** Its place in `priorities`. */
  readonly priority: number;
  readonly due_at: number;
  /** The gate at which it waits for a place; null for the others. */
  readonly held_by: string | null;
}

const kind = [
  'organization_id',
  'agent_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'trigger_type',
] as const;
const columns = sql.join(
  ['id', ...kind, 'priority', 'due_at', 'held_by'].map((name) => sql.ref(`jobs.${name}`)),
);

/** How many jobs of each kind have not ended, by the kept counts; of all organizations where it is null. */
export async function countUnendedKinds(
  { kysely }: Handle,
  organizationId: string | null,
): Promise<CountedKind[]> {
  const rows = await kysely
    .selectFrom('job_counts')
    .select((eb) => [...kind, 'status', eb.fn.sum<number>('count').as('n')])
    // Literals, for their index.
    .where(sql<SqlBool>`status in ('queued', 'active', 'waiting')`)
    .where('count', '<>', 0)
    .$if(organizationId !== null, (all) => all.where('organization_id', '=', organizationId ?? ''))
    .groupBy([...kind, 'status'])
    .having((eb) => eb.fn.sum('count'), '>', 0)
    .execute();
  return rows.map((row) => ({ ...row, n: Number(row.n) }));
}

const given = ({ dialect }: Handle, ids: readonly string[]) =>
  dialect === 'sqlite'
    ? sql`(select value as id from json_each(${listValue(ids)}))`
    : sql`(select json_array_elements_text(${listValue(ids)}::json) as id)`;

/** The exact expression of the index of queued jobs. */
const queued = sql`status || '' = 'queued'`;

/** Of each of the organizations so many queued jobs of a range of times, in their order. */
async function firstOfEach(
  db: Handle,
  ids: readonly string[],
  range: RawBuilder<SqlBool>,
  ofEach: number,
): Promise<WaitingJob[]> {
  const first = (selected: RawBuilder<unknown>) => sql`select ${selected} from jobs
    where organization_id = asked.id and ${queued} and ${range} order by run_at limit ${ofEach}`;
  const found =
    db.dialect === 'sqlite'
      ? sql<WaitingJob>`select ${columns} from ${given(db, ids)} as asked
          cross join jobs on jobs.id in (${first(sql`id`)})`
      : sql<WaitingJob>`select jobs.* from ${given(db, ids)} as asked
          cross join lateral (${first(columns)}) as jobs`;
  const { rows } = await found.execute(db.kysely);
  return rows
    .map((row) => ({ ...row, due_at: Number(row.due_at) }))
    .toSorted((a, b) => a.due_at - b.due_at);
}

/** The longest due queued jobs of each of the organizations, and the next ones that are not due yet. */
export async function findQueued(
  db: Handle,
  ids: readonly string[],
  now: number,
  ofEach: number,
): Promise<{ due: WaitingJob[]; later: WaitingJob[] }> {
  const [due, later] = await Promise.all([
    firstOfEach(db, ids, sql<SqlBool>`run_at <= ${now}`, ofEach),
    firstOfEach(db, ids, sql<SqlBool>`run_at > ${now}`, ofEach),
  ]);
  return { due, later };
}

/** How many queued jobs of each of the organizations begin later, counted to `max`. */
export async function countLater(
  db: Handle,
  ids: readonly string[],
  now: number,
  max: number,
): Promise<Map<string, number>> {
  const { rows } = await sql<{ id: string; n: number }>`select asked.id, (
      select count(*) from (select 1 from jobs
        where organization_id = asked.id and ${queued} and run_at > ${now} limit ${max}) as counted
    ) as n from ${given(db, ids)} as asked`.execute(db.kysely);
  return new Map(rows.map(({ id, n }) => [id, Number(n)]));
}

/** Jobs whose waits have ended, which wait for a slot to go on; so many at most, of all organizations where it is null. */
export async function findWoken(
  db: Handle,
  organizationId: string | null,
  now: number,
  limit: number,
): Promise<WaitingJob[]> {
  // No index has this expression, so those that are due are searched.
  const among =
    organizationId === null ? sql`true` : sql`organization_id || '' = ${organizationId}`;
  const { rows } = await sql<WaitingJob>`select ${columns} from jobs
    where status = 'waiting' and due_at <= ${now} and ${among} order by due_at limit ${limit}`.execute(
    db.kysely,
  );
  return rows.map((row) => ({ ...row, due_at: dueSince(Number(row.due_at)) }));
}

/** Of all organizations: the queued job of each queue that has been due the longest, and how many begin later. */
export async function findEnds(db: Handle, now: number) {
  const oldest = (among: RawBuilder<SqlBool>) =>
    sql<{ id: string; due_at: number; priority: number }>`select id, due_at, priority from jobs
      where status = 'queued' and ${among} and due_at <= ${now} order by due_at limit 1`.execute(
      db.kysely,
    );
  const later = (among: RawBuilder<SqlBool>) =>
    sql<{ n: number; next: number | null }>`select count(*) as n, min(due_at) as next from (
      select due_at from jobs where status = 'queued' and ${among} and due_at > ${now}
      order by due_at limit ${laterMax}) as counted`.execute(db.kysely);
  const scheduled = sql<SqlBool>`trigger_type = 'scheduled'`;
  const others = sql<SqlBool>`trigger_type <> 'scheduled'`;
  const [direct, bySchedule, all, laterByPlan] = await Promise.all([
    oldest(others),
    oldest(scheduled),
    later(sql<SqlBool>`due_at is not null`),
    later(scheduled),
  ]);
  const ofPlan = Number(laterByPlan.rows[0]?.n ?? 0);
  return {
    'skill-execution': {
      oldest: direct.rows[0],
      later: Math.max(0, Number(all.rows[0]?.n ?? 0) - ofPlan),
    },
    'scheduled-jobs': { oldest: bySchedule.rows[0], later: ofPlan },
  };
}
