/**
 * Tokens against budgets: held back before a call of a model, charged after it. Both happen in the
 * transaction of whoever records the call, so that what is charged and what is recorded agree.
 */
import type { Transaction } from '../database/database.ts';
import type { UsageOwnerKind } from '../database/tables.ts';
import type { Usage } from '../models/model.ts';
import { dayOf, monthAround } from './days.ts';
import { keyOf } from './owners.ts';
import { decide, type Standing } from './rule.ts';
import { isSameOwner, standingsOf } from './standings.ts';
import {
  addUsage,
  deleteUnused,
  lockBudgets,
  type OwnerKey,
  readUse,
  type UsageChange,
} from './usage.store.ts';

/** Whose tokens a call uses; each of them may have a budget. */
export interface UsageOwner {
  readonly kind: UsageOwnerKind;
  readonly id: string;
}

/** What a call wants to hold back. */
export interface Wanted {
  readonly organizationId: string;
  readonly owners: readonly UsageOwner[];
  /** Estimate of the prompt's tokens. */
  readonly prompt: number;
  /** Most tokens that the answer may have. */
  readonly output: number;
}

export type Reservation =
  /** `output` is what the answer may have, at most what was wanted; `reserved` is to be given to `charge`. */
  | { readonly kind: 'granted'; readonly output: number; readonly reserved: number }
  /** What is left is held back by calls under way, until one of them ends; a sentence that says so. */
  | { readonly kind: 'wait'; readonly message: string }
  /** A budget is used up; a sentence that says which. */
  | { readonly kind: 'exceeded'; readonly message: string };

/** A call that has ended, one way or the other. */
export interface Charge {
  readonly organizationId: string;
  readonly owners: readonly UsageOwner[];
  /** Milliseconds: when the reservation was made. */
  readonly reservedAt: number;
  readonly reserved: number;
  readonly usage: Usage;
  /** Charged to budgets in place of what was not reported; 0 when all was. */
  readonly estimated: number;
}

export interface Reservations {
  reserve(tx: Transaction, wanted: Wanted, now: number): Promise<Reservation>;
  charge(tx: Transaction, charges: readonly Charge[]): Promise<void>;
}

/**
 * Reserving and charging. Two that reserve for the same owner take turns, so that they never both get
 * the last tokens.
 */
export function createReservations(): Reservations {
  return {
    async reserve(tx, { organizationId, owners, prompt, output }, now) {
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
      // PostgreSQL locks the rows that are written: whoever else reserves for these owners waits from
      // here on, and then sees this. SQLite has one writer at a time anyhow.
      const isAhead = tx.dialect !== 'sqlite';
      const ahead = isAhead ? prompt + output : 0;
      if (isAhead) await add(1, ahead);
      const standings = await readStandings(tx, organizationId, keys, day, ahead);
      const decision = decide({ prompt, output }, standings);
      if (decision.kind === 'granted') {
        const missing = decision.reserved - ahead;
        if (!isAhead || missing !== 0) await add(isAhead ? 0 : 1, missing);
      } else if (isAhead) {
        await add(-1, -ahead);
        await deleteUnused(tx, organizationId, keys, day);
      }
      return decision;
    },

    async charge(tx, charges) {
      // Added up first: one statement for all of them, in one order.
      const sums = new Map<string, UsageChange>();
      for (const charge of charges) {
        for (const owner of charge.owners) {
          const change = changeBy(charge, owner);
          const key = `${change.organization_id}/${owner.kind}/${owner.id}/${change.day}`;
          const before = sums.get(key);
          sums.set(key, before === undefined ? change : sumOf(before, change));
        }
      }
      await addUsage(tx, [...sums.values()]);
    },
  };
}

/** Every budget that the owners have, with what has become of it; without the `own` tokens held back. */
async function readStandings(
  tx: Transaction,
  organizationId: string,
  keys: readonly OwnerKey[],
  day: string,
  own: number,
): Promise<Standing[]> {
  const budgets = await lockBudgets(tx, organizationId, keys);
  if (budgets.length === 0) return [];
  const rows = await readUse(tx, organizationId, budgets, day, monthAround(day));
  return budgets.flatMap((budget) => {
    const row = rows.find((one) => isSameOwner(one, budget));
    return standingsOf(budget, row, day).map((one) => ({ ...one, held: one.held - own }));
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
const summed = Object.keys(nothing) as (keyof typeof nothing)[];

function changeBy(charge: Charge, owner: UsageOwner): UsageChange {
  const { prompt, completion } = charge.usage;
  return {
    organization_id: charge.organizationId,
    ...keyOf(owner),
    // Where it is held back, also when the day is over.
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
  return { ...a, ...Object.fromEntries(summed.map((column) => [column, a[column] + b[column]])) };
}
