/**
 * Tokens against budgets: reserved before a call of a model, charged after it. Both happen in the
 * transaction in which the journal records the call, so that charges and records agree.
 */
import type { Transaction } from '../../adapters/database/database.ts';
import type { UsageOwnerKind } from '../../adapters/database/tables.ts';
import type { Usage } from '../../adapters/models/model.ts';
import { mostCostOf } from '../../adapters/models/price.ts';
import { budgetStatesOf, isSameOwner } from './budget-states.ts';
import { dayOf, monthRange } from './days.ts';
import { keyOf } from './owners.ts';
import { type BudgetState, decideReservation, type ReservationNeed } from './reservation-rule.ts';
import {
  deleteUnused,
  lockBudgets,
  type OwnerKey,
  readUse,
  sumColumns,
  type UsageChange,
  usageCounters,
} from './usage.store.ts';

/** An owner whose tokens a call uses; each may have a budget. */
export interface UsageOwner {
  readonly kind: UsageOwnerKind;
  readonly id: string;
}

/** The tokens that a call needs, and who pays for them. */
export interface ReservationRequest extends ReservationNeed {
  readonly organizationId: string;
  readonly owners: readonly UsageOwner[];
}

export type Reservation =
  /** `output`: tokens of the answer, at most those requested. The rest is passed to `charge`. */
  | {
      readonly kind: 'granted';
      readonly output: number;
      readonly reserved: number;
      /** Nano-dollars; 0 without a price. */
      readonly reservedCost: number;
    }
  /** Calls under way hold the remaining tokens. The message is a sentence that says so. */
  | { readonly kind: 'wait'; readonly message: string }
  /** A budget is used up, or the call needs more than its share of it. The message is a sentence that names it. */
  | { readonly kind: 'exceeded'; readonly message: string }
  /** A budget is in money, and the price of the model is unknown. */
  | { readonly kind: 'unpriced'; readonly message: string };

/** A call that has ended, with or without an answer. */
export interface Charge {
  readonly organizationId: string;
  readonly owners: readonly UsageOwner[];
  /** The time of the reservation, in milliseconds. */
  readonly reservedAt: number;
  readonly reserved: number;
  readonly reservedCost: number;
  readonly usage: Usage;
  /** Tokens charged in place of counts that were not reported. */
  readonly estimated: number;
  /** Nano-dollars for the usage, and for the estimated tokens. */
  readonly cost: number | null;
  readonly estimatedCost: number;
  /** Whether the price is known, or nothing was used. */
  readonly isPriced: boolean;
  /** Owners without budgets, whose use is counted when a call ends. */
  readonly counted: readonly UsageOwner[];
}

/**
 * Reservations for the same owner are serialized, so that two never get the same last tokens. `readBounds` reads other bounds
 * once the owners are locked, for the same reason.
 */
export async function reserve(
  tx: Transaction,
  { organizationId, owners, ...need }: ReservationRequest,
  now: number,
  readBounds?: (tx: Transaction) => Promise<readonly BudgetState[]>,
): Promise<Reservation> {
  const day = dayOf(now);
  const keys = owners.map(keyOf);
  const { prompt, output, price } = need;
  const add = (calls: number, reserved_tokens: number, reserved_cost: number) =>
    usageCounters.add(
      tx,
      keys.map((key) => ({
        ...nothing,
        ...key,
        organization_id: organizationId,
        day,
        calls,
        reserved_tokens,
        reserved_cost,
      })),
    );
  // On PostgreSQL this write locks the owners' rows, so another reservation for them waits for this
  // transaction and sees its result. SQLite has one writer at a time.
  const locksByWrite = tx.dialect !== 'sqlite';
  const ahead = locksByWrite ? prompt + output : 0;
  const aheadCost = locksByWrite && price !== null ? mostCostOf(need, price) : 0;
  if (locksByWrite) await add(1, ahead, aheadCost);
  const own = { tokens: ahead, cost: aheadCost };
  const budgetStates = await readBudgetStates(tx, organizationId, keys, day, own);
  const others = (await readBounds?.(tx)) ?? [];
  const decision = decideReservation(need, [...budgetStates, ...others]);
  if (decision.kind === 'granted') {
    const missing = decision.reserved - ahead;
    const missingCost = decision.reservedCost - aheadCost;
    if (!locksByWrite || missing !== 0 || missingCost !== 0) {
      await add(locksByWrite ? 0 : 1, missing, missingCost);
    }
  } else if (locksByWrite) {
    await add(-1, -ahead, -aheadCost);
    await deleteUnused(tx, organizationId, keys, day);
  }
  return decision;
}

export async function charge(tx: Transaction, charges: readonly Charge[]): Promise<void> {
  // Summed up first: one statement for all charges locks the rows in one order.
  const sums = new Map<string, UsageChange>();
  for (const one of charges) {
    const kinds = [...one.owners, ...one.counted].map((owner) => ({
      owner,
      isCounted: one.counted.includes(owner),
    }));
    for (const { owner, isCounted } of kinds) {
      const change = isCounted ? countedBy(one, owner) : changeBy(one, owner);
      const key = `${change.organization_id}/${owner.kind}/${owner.id}/${change.day}`;
      const before = sums.get(key);
      sums.set(key, before === undefined ? change : sumOf(before, change));
    }
  }
  await usageCounters.add(tx, [...sums.values()]);
}

/** The states of the budgets of the owners, without what this reservation holds itself. */
async function readBudgetStates(
  tx: Transaction,
  organizationId: string,
  keys: readonly OwnerKey[],
  day: string,
  own: Readonly<Record<BudgetState['unit'], number>>,
): Promise<BudgetState[]> {
  const budgets = await lockBudgets(tx, organizationId, keys);
  if (budgets.length === 0) return [];
  const rows = await readUse(tx, organizationId, budgets, day, monthRange(day));
  return budgets.flatMap((budget) => {
    const row = rows.find((one) => isSameOwner(one, budget));
    return budgetStatesOf(budget, row, day).map((one) => ({
      ...one,
      held: one.held - own[one.unit],
    }));
  });
}

const nothing = {
  prompt_tokens: 0,
  completion_tokens: 0,
  estimated_tokens: 0,
  reserved_tokens: 0,
  calls: 0,
  unreported_calls: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  cost: 0,
  estimated_cost: 0,
  reserved_cost: 0,
  unpriced_calls: 0,
};

function changeBy(charge: Charge, owner: UsageOwner): UsageChange {
  const { prompt, completion, cacheRead, cacheWrite, reasoning } = charge.usage;
  return {
    ...nothing,
    organization_id: charge.organizationId,
    ...keyOf(owner),
    // The day of the reservation, also when the call ended on a later one.
    day: dayOf(charge.reservedAt),
    prompt_tokens: prompt ?? 0,
    completion_tokens: completion ?? 0,
    estimated_tokens: charge.estimated,
    reserved_tokens: -charge.reserved,
    unreported_calls: prompt === null || completion === null ? 1 : 0,
    cache_read_tokens: cacheRead ?? 0,
    cache_write_tokens: cacheWrite ?? 0,
    reasoning_tokens: reasoning ?? 0,
    cost: charge.cost ?? 0,
    estimated_cost: charge.estimatedCost,
    reserved_cost: -charge.reservedCost,
    unpriced_calls: charge.isPriced ? 0 : 1,
  };
}

/** The same for an owner for whom nothing was reserved. */
function countedBy(charge: Charge, owner: UsageOwner): UsageChange {
  return { ...changeBy(charge, owner), reserved_tokens: 0, reserved_cost: 0, calls: 1 };
}

function sumOf(a: UsageChange, b: UsageChange): UsageChange {
  return {
    ...a,
    ...Object.fromEntries(sumColumns.map((column) => [column, a[column] + b[column]])),
  };
}
