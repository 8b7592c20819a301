/** Every query on the counters of runs. */
import { type AliasedRawBuilder, type SqlBool, sql } from 'kysely';
import { Counters } from '../../adapters/database/counters.ts';
import type { Handle, Transaction } from '../../adapters/database/database.ts';
import { statement } from '../../adapters/database/statement.ts';
import type { RunStatisticsTable, SkillKeyRunsTable } from '../../adapters/database/tables.ts';

export type RunCounts = RunStatisticsTable;
export type KeyRuns = SkillKeyRunsTable;

/** A skill version. */
export interface SkillName {
  readonly category: string;
  readonly name: string;
  readonly version: string;
}

/** The name columns of the row for all skills together. */
export const allSkills = { skill_category: '', skill_name: '', skill_version: '' } as const;

const runKey = [
  'organization_id',
  'seconds',
  'start',
  'skill_category',
  'skill_name',
  'skill_version',
] as const;
export const runSums = [
  'accepted',
  'completed',
  'failed',
  'cancelled',
  'duration_ms',
  'prompt_tokens',
  'completion_tokens',
  'cost',
  'unreported_calls',
  'unpriced_calls',
] as const;
/** The runs of skills by bucket. */
export const runCounters = new Counters('run_statistics', {
  key: runKey,
  sums: runSums,
  maxima: ['longest_ms'],
});

const keyOfKeyRuns = [
  'organization_id',
  'skill_category',
  'skill_name',
  'skill_version',
  'day',
  'api_key_id',
] as const;
/** The runs of skills by day and key. */
export const keyRunCounters = new Counters('skill_key_runs', {
  key: keyOfKeyRuns,
  sums: ['runs'],
  maxima: ['last_used_at'],
});

/** A range of time in buckets of `seconds`; `to` is exclusive. */
export interface Span {
  readonly seconds: number;
  readonly from: number;
  readonly to: number;
}

const within = (db: Handle, organizationId: string, { seconds, from, to }: Span) =>
  db.kysely
    .selectFrom('run_statistics')
    .where('organization_id', '=', organizationId)
    .where('seconds', '=', seconds)
    .where('start', '>=', from)
    .where('start', '<', to);

const summed = <C extends string>(columns: readonly C[]) =>
  columns.map((column) =>
    // On PostgreSQL the sum is a numeric, which the driver is set to read as a number.
    sql<number>`sum(${sql.ref(column)})`.as(column),
  ) as AliasedRawBuilder<number, C>[];

/** An organization's counters of all skills, by bucket; empty buckets are left out. */
export function countsByStart(db: Handle, organizationId: string, span: Span) {
  return within(db, organizationId, span)
    .where('skill_category', '=', allSkills.skill_category)
    .select(['start', ...runSums])
    .execute();
}

/** The counters of skill versions with ended runs, those with most runs first. */
export function countsBySkill(db: Handle, organizationId: string, span: Span, limit: number) {
  const ended = sql<number>`sum(completed + failed + cancelled)`;
  return within(db, organizationId, span)
    .where('skill_category', '<>', allSkills.skill_category)
    .select(['skill_category', 'skill_name', 'skill_version'])
    .select(summed(['completed', 'failed', 'cancelled', 'duration_ms'] as const))
    .select((eb) => eb.fn.max<number>('longest_ms').as('longest_ms'))
    .groupBy(['skill_category', 'skill_name', 'skill_version'])
    .having(sql<SqlBool>`${ended} > 0`)
    .orderBy(ended, 'desc')
    .orderBy('skill_category')
    .orderBy('skill_name')
    .orderBy('skill_version')
    .limit(limit)
    .execute();
}

/** The keys of an organization that ran a skill version since a day, last used first, and the total. */
export async function keysOfSkill(
  db: Handle,
  organizationId: string,
  { category, name, version }: SkillName,
  since: string,
  limit: number,
) {
  const used = db.kysely
    .selectFrom('skill_key_runs')
    .select((eb) => [
      'api_key_id',
      eb.fn.sum<number>('runs').as('runs'),
      eb.fn.max<number>('last_used_at').as('last_used_at'),
      // The number of all groups, also beyond the limit.
      sql<number>`count(*) over ()`.as('total'),
    ])
    .where('organization_id', '=', organizationId)
    .where('skill_category', '=', category)
    .where('skill_name', '=', name)
    .where('skill_version', '=', version)
    .where('day', '>=', since)
    .groupBy('api_key_id')
    .orderBy('last_used_at', 'desc')
    .orderBy('api_key_id')
    .limit(limit);
  const rows = await db.kysely
    .selectFrom(used.as('used'))
    .innerJoin('api_keys', 'api_keys.id', 'used.api_key_id')
    .select(['api_keys.id', 'client_name', 'runs', 'last_used_at', 'total'])
    .orderBy('last_used_at', 'desc')
    .orderBy('api_keys.id')
    .execute();
  return {
    rows: rows.map(({ total: _, ...row }) => row),
    total: Number(rows[0]?.total ?? 0),
  };
}

const oldRuns = statement<{ seconds: number; before: number; limit: number }>()((db, p) =>
  db
    .selectFrom('run_statistics')
    .select([...runKey])
    // Expressions that match the indexes made for this query.
    .where(sql<SqlBool>`seconds + 0 = ${p('seconds')}`)
    .where(sql<SqlBool>`start + 0 < ${p('before')}`)
    .orderBy(sql`start + 0`)
    .limit(p('limit')),
);
/** Deletes at most `limit` buckets of a width that began before `before`. Returns how many were found. */
export async function deleteRunCounts(
  tx: Transaction,
  seconds: number,
  before: number,
  limit: number,
): Promise<number> {
  const rows = await tx.all(oldRuns, { seconds, before, limit });
  await runCounters.remove(tx, rows);
  return rows.length;
}

const oldKeys = statement<{ before: string; limit: number }>()((db, p) =>
  db
    .selectFrom('skill_key_runs')
    .select([...keyOfKeyRuns])
    .where(sql<SqlBool>`day || '' < ${p('before')}`)
    .orderBy(sql`day || ''`)
    .limit(p('limit')),
);
/** The same for runs by key on days before `before`. */
export async function deleteKeyRuns(
  tx: Transaction,
  before: string,
  limit: number,
): Promise<number> {
  const rows = await tx.all(oldKeys, { before, limit });
  await keyRunCounters.remove(tx, rows);
  return rows.length;
}
