import type { Context } from '../../core/context/context.ts';
import { createBudgets } from '../../core/usage/budgets.ts';
import type { OwnerLookups } from '../../core/usage/owners.ts';
import { createUsage } from '../../core/usage/usage.ts';

/** The ledger of tokens and its limits. */
export function composeUsage(base: Pick<Context, 'database' | 'clock'>, owners: OwnerLookups) {
  return { usage: createUsage(base), budgets: createBudgets({ ...base, owners }) };
}
