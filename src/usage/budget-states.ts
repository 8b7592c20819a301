/** The state of a budget, from its row and the row of its use. */
import { monthOf } from './days.ts';
import type { BudgetState } from './reservation-rule.ts';
import type { BudgetRow, OwnerKey, UseRow } from './usage.store.ts';

export const isSameOwner = (a: OwnerKey, b: OwnerKey) =>
  a.owner_kind === b.owner_kind && a.owner_id === b.owner_id;

/** One state for the day and one for the month, where the budget limits them. */
export function budgetStatesOf(
  { owner_kind, owner_id, tokens_per_day, tokens_per_month }: BudgetRow,
  use: UseRow | undefined,
  day: string,
): BudgetState[] {
  const owner = { kind: owner_kind, id: owner_id };
  const periods = [
    { period: day, limit: tokens_per_day, used: use?.day_used, held: use?.day_held },
    { period: monthOf(day), limit: tokens_per_month, used: use?.month_used, held: use?.month_held },
  ];
  return periods.flatMap(({ period, limit, used = 0, held = 0 }) =>
    limit === null ? [] : [{ owner, period, limit, used, held }],
  );
}
