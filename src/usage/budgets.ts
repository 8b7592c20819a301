/**
 * Budgets: how many tokens an owner may use in a day and in a month, in UTC. A change counts from the
 * next reservation on; calls that are under way are finished.
 */
import type { Database, Transaction } from '../database/database.ts';
import { type Clock, timestampOrNull } from '../kernel/clock.ts';
import {
  findOwner,
  holdOwner,
  keyOf,
  type NamedOwner,
  type Owner,
  type OwnerLookups,
  shownOwner,
} from './owners.ts';
import { type BudgetRow, deleteBudget, findBudget, replaceBudget } from './usage.store.ts';

/** Tokens; what is left out or null is no limit. */
export interface BudgetFields {
  tokens_per_day?: number | null;
  tokens_per_month?: number | null;
}

export type Budgets = ReturnType<typeof createBudgets>;

export function createBudgets(parts: { database: Database; clock: Clock; owners: OwnerLookups }) {
  const { database, clock, owners } = parts;

  return {
    /** The budget, with nulls where there is none; `404` for an owner that is not there. */
    async get(named: NamedOwner) {
      const owner = await findOwner(owners, named);
      return shown(owner, await findBudget(database.read, owner.organizationId, keyOf(owner)));
    },

    /** Puts it in the place of the one that is there. */
    async put(named: NamedOwner, fields: BudgetFields) {
      const owner = await findOwner(owners, named);
      const row: BudgetRow = {
        organization_id: owner.organizationId,
        ...keyOf(owner),
        tokens_per_day: fields.tokens_per_day ?? null,
        tokens_per_month: fields.tokens_per_month ?? null,
        updated_at: clock.now(),
      };
      await database.write(async (tx) => {
        await holdOwner(owners, tx, owner);
        await replaceBudget(tx, row);
      });
      return shown(owner, row);
    },

    /** Also when there is none. */
    async remove(named: NamedOwner): Promise<void> {
      const owner = await findOwner(owners, named);
      await database.write((tx) => deleteBudget(tx, owner.organizationId, keyOf(owner)));
    },

    /** The budget of an owner that is deleted in this transaction. What it has used stays known. */
    async removeOwner(tx: Transaction, owner: Owner): Promise<void> {
      await deleteBudget(tx, owner.organizationId, keyOf(owner));
    },
  };
}

function shown(owner: Owner, row: BudgetRow | undefined) {
  return {
    ...shownOwner(owner),
    tokens_per_day: row?.tokens_per_day ?? null,
    tokens_per_month: row?.tokens_per_month ?? null,
    updated_at: timestampOrNull(row?.updated_at ?? null),
  };
}
