/**
 * Whether the budget of an owner has room for a call that reserves nothing, because no journal would release what a
 * process that dies had reserved. Calls at the same time may so pass a limit by what they take together.
 */
import type { Handle } from '../database/database.ts';
import { budgetStatesOf } from './budget-states.ts';
import { dayOf, monthRange } from './days.ts';
import { keyOf } from './owners.ts';
import { decideReservation, type ReservationNeed } from './reservation-rule.ts';
import type { UsageOwner } from './reservations.ts';
import { findBudget, readUse } from './usage.store.ts';

interface BudgetQuestion extends ReservationNeed {
  readonly organizationId: string;
  readonly owner: UsageOwner;
}

/** Null where there is room; else a sentence that says why not. */
export async function budgetFault(
  db: Handle,
  { organizationId, owner, ...need }: BudgetQuestion,
  now: number,
): Promise<string | null> {
  const key = keyOf(owner);
  const budget = await findBudget(db, organizationId, key);
  if (budget === undefined) return null;
  const day = dayOf(now);
  const [use] = await readUse(db, organizationId, [key], day, monthRange(day));
  const decision = decideReservation(need, budgetStatesOf(budget, use, day));
  return decision.kind === 'granted' ? null : decision.message;
}
