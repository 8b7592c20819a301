/**
 * Kinds of jobs: those of one agent, skill, trigger type and status. Their counts are kept, and the newest
 * jobs of each kind are found in an index, so a page of rare or old jobs needs no walk past all others.
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely';
import type { Handle } from '../../adapters/database/database.ts';
import { isWithin, type Window } from '../../adapters/database/job-window.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';

/** What jobs are counted by: a kind is one of each. */
const kindColumns = [
  'agent_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'trigger_type',
  'status',
] as const;
export type KindColumn = (typeof kindColumns)[number];
/** The columns that a list is narrowed by, with their values. */
export type Equal = readonly [KindColumn, never][];

/** Jobs that are walked past to find a page. */
export const walkedMax = 10_000;

/** The counts of an organization's jobs, in rows of each process. */
function countsOf(db: Handle, organizationId: string, equal: Equal) {
  let query = db.kysely.selectFrom('job_counts').where('organization_id', '=', organizationId);
  for (const [column, value] of equal) query = query.where(column, '=', value);
  return query;
}

/** The kinds of which an organization has jobs, with how many. */
function kindsOf(db: Handle, organizationId: string, equal: Equal) {
  return countsOf(db, organizationId, equal)
    .select((eb) => [...kindColumns, eb.fn.sum<number>('count').as('n')])
    .groupBy([...kindColumns])
    .having((eb) => eb.fn.sum('count'), '>', 0);
}

/** How many jobs there are, and at most how many kinds: each process counts in rows of its own. */
export async function countJobs(db: Handle, organizationId: string, equal: Equal) {
  const row = await countsOf(db, organizationId, equal)
    .select((eb) => [
      eb.fn.sum<number | null>('count').as('total'),
      eb.fn.countAll<number>().as('kinds'),
    ])
    .executeTakeFirst();
  return { total: Number(row?.total ?? 0), kinds: Number(row?.kinds ?? 0) };
}

/** That a job is the organization's and lies in the window. */
function isIn(organizationId: string, window: Window | null): RawBuilder<SqlBool> {
  const isOfOrganization = sql<SqlBool>`jobs.organization_id = ${organizationId}`;
  return window === null
    ? isOfOrganization
    : sql<SqlBool>`${isOfOrganization} and ${isWithin(window)}`;
}

/** The ids of a page, if it lies among the newest jobs of all, or of the window. */
export function newestMet(
  organizationId: string,
  equal: Equal,
  { limit, offset }: PageAsked,
  window: Window | null,
  walked = walkedMax,
): RawBuilder<string> {
  const conditions = equal.map(([column, value]) => sql`${sql.ref(column)} = ${value}`);
  return sql<string>`select id from (
      select id, ${sql.join(kindColumns.map((column) => sql.ref(column)))} from jobs
      where ${isIn(organizationId, window)} order by id desc limit ${walked}
    ) as newest
    where ${sql.join(conditions, sql` and `)} order by id desc limit ${limit} offset ${offset}`;
}

/**
 * The ids of a page, of the newest jobs of each kind: what is rare, or was long ago, is found without
 * walking past everything else.
 */
export function newestOfKinds(
  db: Handle,
  organizationId: string,
  equal: Equal,
  { limit, offset }: PageAsked,
  window: Window | null,
): RawBuilder<string> {
  const ids = idsOfKinds(db, organizationId, equal, offset + limit, window);
  return sql<string>`${ids} order by newest.id desc limit ${limit} offset ${offset}`;
}

/** So many ids of the window, whichever are met first: for counting them. */
export function anyOfKinds(
  db: Handle,
  organizationId: string,
  equal: Equal,
  limit: number,
  window: Window | null,
): RawBuilder<string> {
  return sql<string>`${idsOfKinds(db, organizationId, equal, limit, window)} limit ${limit}`;
}

/**
 * Of each kind the ids of its newest jobs, so many. Status and id are compared together, and are the
 * order: only the index of kinds has it. By the id alone the planner may walk through all jobs where it
 * believes a kind to be frequent.
 */
function idsOfKinds(
  db: Handle,
  organizationId: string,
  equal: Equal,
  ofEach: number,
  window: Window | null,
): RawBuilder<string> {
  const ofKind = sql.join(
    kindColumns
      .filter((column) => column !== 'status')
      .map((column) => sql`jobs.${sql.ref(column)} = kinds.${sql.ref(column)}`),
    sql` and `,
  );
  const { from, to, rows } = window ?? { from: '', to: null, rows: [] };
  const ends = [
    sql`(jobs.status, jobs.id) >= (kinds.status, ${from})`,
    sql`(jobs.status, jobs.id) < (kinds.status, ${to ?? afterAllIds})`,
    ...rows,
  ];
  return sql<string>`select newest.id from (${kindsOf(db, organizationId, equal)}) as kinds
    cross join lateral (
      select jobs.id from jobs where jobs.organization_id = ${organizationId} and ${ofKind}
        and ${sql.join(ends, sql` and `)}
      order by jobs.status desc, jobs.id desc limit ${ofEach}
    ) as newest`;
}

/** Ids are hexadecimal. */
const afterAllIds = 'g';
