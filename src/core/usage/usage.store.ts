/** Every query on usage and budgets; in one file, because both find owners by the same condition. */

import { type RawBuilder, type Selectable, type SqlBool, sql } from 'kysely';
import { countOf } from '../../adapters/database/count-of.ts';
import { Counters } from '../../adapters/database/counters.ts';
import type { Dialect, Handle, Transaction } from '../../adapters/database/database.ts';
import { locked } from '../../adapters/database/locked.ts';
import type { PageAsked } from '../../adapters/database/page-bytes.ts';
import { statement } from '../../adapters/database/statement.ts';
import type {
  TokenBudgetsTable,
  TokenUsageTable,
  UsageOwnerKind,
} from '../../adapters/database/tables.ts';

export type BudgetRow = Selectable<TokenBudgetsTable>;

/** Both days included. */
export interface DayRange {
  readonly from: string;
  readonly to: string;
}

/** The owner within an organization. */
export type OwnerKey = Pick<BudgetRow, 'owner_kind' | 'owner_id'>;

/** The condition that a row belongs to one of the owners of `ownersParam`. */
const isOneOf = (dialect: Dialect, owners: RawBuilder<string>) => {
  const items =
    dialect === 'sqlite'
      ? sql`json_each(${owners})`
      : sql`json_array_elements(${owners}::json) as t(value)`;
  return sql<SqlBool>`(owner_kind, owner_id) in (select value->>0, value->>1 from ${items})`;
};

const ownersParam = (owners: readonly OwnerKey[]) =>
  JSON.stringify(owners.map(({ owner_kind, owner_id }) => [owner_kind, owner_id]));

/** The tokens added to an owner's day; negative for released reservations. */
export type UsageChange = Readonly<Selectable<TokenUsageTable>>;

const keyColumns = ['organization_id', 'owner_kind', 'owner_id', 'day'] as const;
export const sumColumns = [
  'prompt_tokens',
  'completion_tokens',
  'estimated_tokens',
  'reserved_tokens',
  'calls',
  'unreported_calls',
  'cache_read_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'cost',
  'estimated_cost',
  'reserved_cost',
  'unpriced_calls',
] as const;

/** The usage of days. PostgreSQL locks the rows that a transaction adds to until it ends. */
export const usageCounters = new Counters('token_usage', { key: keyColumns, sums: sumColumns });

const removeUnused = statement<{ organization_id: string; owners: string; day: string }>()(
  (db, p, dialect) =>
    db
      .deleteFrom('token_usage')
      .where('organization_id', '=', p('organization_id'))
      .where(isOneOf(dialect, p('owners')))
      .where('day', '=', p('day'))
      .where('calls', '=', sql.lit(0)),
);

/** Deletes the rows of a day without calls. */
export async function deleteUnused(
  tx: Transaction,
  organizationId: string,
  owners: readonly OwnerKey[],
  day: string,
): Promise<void> {
  const params = { organization_id: organizationId, owners: ownersParam(owners), day };
  await tx.all(removeUnused, params);
}

/**
 * Moves what an agent of this id has used so far to the kind `deleted_agent`, so that a new agent of
 * the id begins with nothing used.
 */
export function setAsideUsage(
  tx: Transaction,
  organizationId: string,
  agentId: string,
): Promise<void> {
  const of = { organizationId, kind: 'agent', id: agentId } as const;
  return moveUsage(tx, of, { owner_kind: 'deleted_agent' });
}

/** Moves what was used for a user to another id. */
export async function renameUserUsage(
  tx: Transaction,
  organizationId: string,
  userId: string,
  renamed: string,
): Promise<void> {
  await moveUsage(tx, { organizationId, kind: 'user', id: userId }, { owner_id: renamed });
}

async function moveUsage(
  tx: Transaction,
  { organizationId, kind, id }: { organizationId: string; kind: 'agent' | 'user'; id: string },
  changed: { owner_kind: 'deleted_agent' } | { owner_id: string },
): Promise<void> {
  const query = tx.kysely
    .selectFrom('token_usage')
    .select([...keyColumns, ...sumColumns])
    .where('organization_id', '=', organizationId)
    .where('owner_kind', '=', kind)
    .where('owner_id', '=', id)
    .orderBy('day');
  // Calls under way may still be charged.
  const rows = await locked(tx.dialect, query).execute();
  await usageCounters.add(
    tx,
    rows.map((row) => ({ ...row, ...changed })),
  );
  await usageCounters.remove(tx, rows);
}

interface UseParams extends DayRange {
  readonly organization_id: string;
  readonly owners: string;
  readonly day: string;
}

const use = statement<UseParams>()((db, p, dialect) => {
  const used = sql`prompt_tokens + completion_tokens + estimated_tokens`;
  const ofDay = (tokens: typeof used) => sql`case when day = ${p('day')} then ${tokens} else 0 end`;
  // On PostgreSQL the sum is a numeric, which the driver is set to read as a number.
  const sum = (tokens: typeof used) => sql<number>`sum(${tokens})`;
  const held = sql`reserved_tokens`;
  const cost = sql`cost + estimated_cost`;
  const heldCost = sql`reserved_cost`;
  const partial = sql`unreported_calls + unpriced_calls`;
  return db
    .selectFrom('token_usage')
    .select([
      'owner_kind',
      'owner_id',
      sum(ofDay(used)).as('day_used'),
      sum(ofDay(held)).as('day_held'),
      sum(used).as('month_used'),
      sum(held).as('month_held'),
      sum(ofDay(cost)).as('day_cost'),
      sum(ofDay(heldCost)).as('day_held_cost'),
      sum(cost).as('month_cost'),
      sum(heldCost).as('month_held_cost'),
      sum(ofDay(partial)).as('day_partial'),
      sum(partial).as('month_partial'),
    ])
    .where('organization_id', '=', p('organization_id'))
    .where(isOneOf(dialect, p('owners')))
    .where('day', '>=', p('from'))
    .where('day', '<=', p('to'))
    .groupBy(['owner_kind', 'owner_id']);
});

/** The tokens that owners have used and hold on a day and in its month; owners without any are left out. */
export function readUse(
  db: Handle,
  organizationId: string,
  owners: readonly OwnerKey[],
  day: string,
  month: DayRange,
) {
  const params = { organization_id: organizationId, owners: ownersParam(owners), day, ...month };
  return db.all(use, params);
}

/** The tokens that an owner has used and holds. */
export type UseRow = Awaited<ReturnType<typeof readUse>>[number];

const shownColumns = [
  'day',
  'prompt_tokens',
  'completion_tokens',
  'estimated_tokens',
  'calls',
  'unreported_calls',
  'cache_read_tokens',
  'cache_write_tokens',
  'reasoning_tokens',
  'cost',
  'estimated_cost',
  'unpriced_calls',
] as const;

/** The columns of an owner's day that clients read. */
export type DayRow = Pick<UsageChange, (typeof shownColumns)[number]>;

/** An owner's days, newest first. */
export function listDays(
  db: Handle,
  organizationId: string,
  { owner_kind, owner_id }: OwnerKey,
  { from, to }: DayRange,
): Promise<DayRow[]> {
  return db.kysely
    .selectFrom('token_usage')
    .select([...shownColumns])
    .where('organization_id', '=', organizationId)
    .where('owner_kind', '=', owner_kind)
    .where('owner_id', '=', owner_id)
    .where('day', '>=', from)
    .where('day', '<=', to)
    .orderBy('day', 'desc')
    .execute();
}

export interface UsageFilters {
  organization_id?: string | undefined;
  owner_kind?: UsageOwnerKind | undefined;
  owner_id?: string | undefined;
}

const limitColumns = [
  'tokens_per_day',
  'tokens_per_month',
  'cost_per_day',
  'cost_per_month',
] as const;

/** A page of the days of all owners, newest first, with their limits, and the total. */
export async function listUsage(
  db: Handle,
  filters: UsageFilters,
  { from, to }: DayRange,
  page: PageAsked,
) {
  let query = db.kysely.selectFrom('token_usage').where('day', '>=', from).where('day', '<=', to);
  for (const column of ['organization_id', 'owner_kind', 'owner_id'] as const) {
    const value = filters[column];
    if (value !== undefined) query = query.where(`token_usage.${column}`, '=', value);
  }
  const total = await countOf(query);
  const pageRows = query
    .select(['organization_id', 'owner_kind', 'owner_id', ...shownColumns])
    .orderBy('day', 'desc')
    .orderBy('organization_id')
    .orderBy('owner_kind')
    .orderBy('owner_id')
    .limit(page.limit)
    .offset(page.offset);
  // Joins the page alone, not the rows that it skips.
  const rows = await db.kysely
    .selectFrom(pageRows.as('usage'))
    .leftJoin('token_budgets', (join) =>
      join
        .onRef('token_budgets.organization_id', '=', 'usage.organization_id')
        .onRef('token_budgets.owner_kind', '=', 'usage.owner_kind')
        .onRef('token_budgets.owner_id', '=', 'usage.owner_id'),
    )
    .selectAll('usage')
    .select([...limitColumns])
    .orderBy('day', 'desc')
    .orderBy('usage.organization_id')
    .orderBy('usage.owner_kind')
    .orderBy('usage.owner_id')
    .execute();
  return { rows, total };
}

const old = statement<{ before: string; limit: number }>()((db, p) =>
  db
    .selectFrom('token_usage')
    .select([...keyColumns])
    .where('day', '<', p('before'))
    .orderBy('day')
    .orderBy('organization_id')
    .orderBy('owner_kind')
    .orderBy('owner_id')
    .limit(p('limit')),
);
/** Deletes at most `limit` rows of days before `before`. Returns how many were found. */
export async function deleteUsageBefore(
  tx: Transaction,
  before: string,
  limit: number,
): Promise<number> {
  const rows = await tx.all(old, { before, limit });
  await usageCounters.remove(tx, rows);
  return rows.length;
}

const ownerColumns = ['organization_id', 'owner_kind', 'owner_id'] as const;
const budgetColumns = [...ownerColumns, ...limitColumns, 'updated_at'] as const;

const ofOwners = statement<{ organization_id: string; owners: string }>()((db, p, dialect) => {
  const query = db
    .selectFrom('token_budgets')
    .select([...budgetColumns])
    .where('organization_id', '=', p('organization_id'))
    .where(isOneOf(dialect, p('owners')));
  // SQLite has one writer at a time. PostgreSQL locks in one order, so that transactions do not deadlock.
  if (dialect === 'sqlite') return query;
  return query.orderBy('owner_kind').orderBy('owner_id').forUpdate();
});

/** The budgets of owners, locked until the transaction ends. */
export function lockBudgets(
  tx: Transaction,
  organizationId: string,
  owners: readonly OwnerKey[],
): Promise<BudgetRow[]> {
  return tx.all(ofOwners, { organization_id: organizationId, owners: ownersParam(owners) });
}

const ofOwner = statement<Pick<BudgetRow, (typeof ownerColumns)[number]>>()((db, p) =>
  db
    .selectFrom('token_budgets')
    .select([...budgetColumns])
    .where('organization_id', '=', p('organization_id'))
    .where('owner_kind', '=', p('owner_kind'))
    .where('owner_id', '=', p('owner_id')),
);

export function findBudget(
  db: Handle,
  organizationId: string,
  owner: OwnerKey,
): Promise<BudgetRow | undefined> {
  return db.first(ofOwner, { organization_id: organizationId, ...owner });
}

/** Inserts or replaces the budget. */
export async function replaceBudget(tx: Transaction, row: BudgetRow): Promise<void> {
  const { organization_id: _, owner_kind: _kind, owner_id: _id, ...set } = row;
  await tx.kysely
    .insertInto('token_budgets')
    .values(row)
    .onConflict((conflict) => conflict.columns([...ownerColumns]).doUpdateSet(set))
    .execute();
}

/** Deletes the budget of an owner; false when there is none. */
export async function deleteBudget(
  tx: Transaction,
  organizationId: string,
  { owner_kind, owner_id }: OwnerKey,
): Promise<boolean> {
  const { numDeletedRows } = await tx.kysely
    .deleteFrom('token_budgets')
    .where('organization_id', '=', organizationId)
    .where('owner_kind', '=', owner_kind)
    .where('owner_id', '=', owner_id)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}
