/** The states of a budget, from its row and the row of its use. */
import { monthOf } from './days.ts';
import type { BudgetState } from './reservation-rule.ts';
import type { BudgetRow, OwnerKey, UseRow } from './usage.store.ts';

export const isSameOwner = (a: OwnerKey, b: OwnerKey) =>
  a.owner_kind === b.owner_kind && a.owner_id === b.owner_id;

/** One state for each limit of the budget: tokens and money, of the day and of the month. */
export function budgetStatesOf(
  budget: BudgetRow,
  use: UseRow | undefined,
  day: string,
): BudgetState[] {
  const owner = { kind: budget.owner_kind, id: budget.owner_id };
  const month = monthOf(day);
  const limits = [
    { unit: 'tokens', period: day, limit: budget.tokens_per_day, ...tokensOfDay(use) },
    { unit: 'tokens', period: month, limit: budget.tokens_per_month, ...tokensOfMonth(use) },
    { unit: 'cost', period: day, limit: budget.cost_per_day, ...costOfDay(use) },
    { unit: 'cost', period: month, limit: budget.cost_per_month, ...costOfMonth(use) },
  ] as const;
  return limits.flatMap(({ limit, ...state }) =>
    limit === null ? [] : [{ owner, limit, ...state }],
  );
}

type Use = UseRow | undefined;

export const tokensOfDay = (use: Use) => ({ used: use?.day_used ?? 0, held: use?.day_held ?? 0 });
export const tokensOfMonth = (use: Use) => ({
  used: use?.month_used ?? 0,
  held: use?.month_held ?? 0,
});
export const costOfDay = (use: Use) => ({
  used: use?.day_cost ?? 0,
  held: use?.day_held_cost ?? 0,
});
export const costOfMonth = (use: Use) => ({
  used: use?.month_cost ?? 0,
  held: use?.month_held_cost ?? 0,
});
