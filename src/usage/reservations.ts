/**
 * Tokens against budgets: reserved before a call of a model, charged after it. Both happen in the
 * transaction in which the journal records the call, so that charges and records agree.
 */
import type { Transaction } from '../database/database.ts';
import type { UsageOwnerKind } from '../database/tables.ts';
import type { Usage } from '../models/model.ts';
import { budgetStatesOf, isSameOwner } from './budget-states.ts';
import { dayOf, monthRange } from './days.ts';
import { keyOf } from './owners.ts';
import { type BudgetState, decideReservation } from './reservation-rule.ts';
import {
  addUsage,
  deleteUnused,
  lockBudgets,
  type OwnerKey,
  readUse,
  sumColumns,
  type UsageChange,
} from './usage.store.ts';

/** An owner whose tokens a call uses; each may have a budget. */
export interface UsageOwner {
  readonly kind: UsageOwnerKind;
  readonly id: string;
}

/** The tokens that a call needs. */
export interface ReservationRequest {
  readonly organizationId: string;
  readonly owners: readonly UsageOwner[];
  /** Estimate of the prompt's tokens. */
  readonly prompt: number;
  /** The most tokens of the answer. */
  readonly output: number;
}

export type Reservation =
  /** `output`: tokens of the answer, at most those requested. `reserved` is passed to `charge`. */
  | { readonly kind: 'granted'; readonly output: number; readonly reserved: number }
  /** Calls under way hold the remaining tokens. The message is a sentence that says so. */
  | { readonly kind: 'wait'; readonly message: string }
  /** A budget is used up. The message is a sentence that names it. */
  | { readonly kind: 'exceeded'; readonly message: string };

/** A call that has ended, with or without an answer. */
export interface Charge {
  readonly organizationId: string;
  readonly owners: readonly UsageOwner[];
  /** The time of the reservation, in milliseconds. */
  readonly reservedAt: number;
  readonly reserved: number;
  readonly usage: Usage;
  /** Tokens charged in place of counts that were not reported. */
  readonly estimated: number;
}

/** Reservations for the same owner are serialized, so that two never get the same last tokens. */
export async function reserve(
  tx: Transaction,
  { organizationId, owners, prompt, output }: ReservationRequest,
  now: number,
): Promise<Reservation> {
  const day = dayOf(now);
  const keys = owners.map(keyOf);
  const add = (calls: number, reserved_tokens: number) =>
    addUsage(
      tx,
      keys.map((key) => ({
        ...nothing,
        ...key,
        organization_id: organizationId,
        day,
        calls,
        reserved_tokens,
      })),
    );
  // On PostgreSQL this write locks the owners' rows, so another reservation for them waits for this
  // transaction and sees its result. SQLite has one writer at a time.
  const locksByWrite = tx.dialect !== 'sqlite';
  const ahead = locksByWrite ? prompt + output : 0;
  if (locksByWrite) await add(1, ahead);
  const budgetStates = await readBudgetStates(tx, organizationId, keys, day, ahead);
  const decision = decideReservation({ prompt, output }, budgetStates);
  if (decision.kind === 'granted') {
    const missing = decision.reserved - ahead;
    if (!locksByWrite || missing !== 0) await add(locksByWrite ? 0 : 1, missing);
  } else if (locksByWrite) {
    await add(-1, -ahead);
    await deleteUnused(tx, organizationId, keys, day);
  }
  return decision;
}

export async function charge(tx: Transaction, charges: readonly Charge[]): Promise<void> {
  // Summed up first: one statement for all charges locks the rows in one order.
  const sums = new Map<string, UsageChange>();
  for (const one of charges) {
    for (const owner of one.owners) {
      const change = changeBy(one, owner);
      const key = `${change.organization_id}/${owner.kind}/${owner.id}/${change.day}`;
      const before = sums.get(key);
      sums.set(key, before === undefined ? change : sumOf(before, change));
    }
  }
  await addUsage(tx, [...sums.values()]);
}

/** The state of each budget of the owners, without the `own` tokens held by this reservation. */
async function readBudgetStates(
  tx: Transaction,
  organizationId: string,
  keys: readonly OwnerKey[],
  day: string,
  own: number,
): Promise<BudgetState[]> {
  const budgets = await lockBudgets(tx, organizationId, keys);
  if (budgets.length === 0) return [];
  const rows = await readUse(tx, organizationId, budgets, day, monthRange(day));
  return budgets.flatMap((budget) => {
    const row = rows.find((one) => isSameOwner(one, budget));
    return budgetStatesOf(budget, row, day).map((one) => ({ ...one, held: one.held - own }));
  });
}

const nothing = {
  prompt_tokens: 0,
  completion_tokens: 0,
  estimated_tokens: 0,
  reserved_tokens: 0,
  calls: 0,
  unreported_calls: 0,
};
function changeBy(charge: Charge, owner: UsageOwner): UsageChange {
  const { prompt, completion } = charge.usage;
  return {
    organization_id: charge.organizationId,
    ...keyOf(owner),
    // The day of the reservation, also when the call ended on a later one.
    day: dayOf(charge.reservedAt),
    prompt_tokens: prompt ?? 0,
    completion_tokens: completion ?? 0,
    estimated_tokens: charge.estimated,
    reserved_tokens: -charge.reserved,
    calls: 0,
    unreported_calls: prompt === null || completion === null ? 1 : 0,
  };
}

function sumOf(a: UsageChange, b: UsageChange): UsageChange {
  return {
    ...a,
    ...Object.fromEntries(sumColumns.map((column) => [column, a[column] + b[column]])),
  };
}
