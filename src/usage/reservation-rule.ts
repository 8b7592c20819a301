/**
 * The rule of reservations: whether a call is granted, and for how many tokens, has to wait, or is
 * refused. Pure. If each call reserves what the rule grants, and uses no more, no budget is exceeded.
 */
import type { UsageOwnerKind } from '../database/tables.ts';
import type { Reservation, UsageOwner } from './reservations.ts';

/** The least tokens of an answer for which a call is made. */
export const outputMin = 16;

/** A budget for a day or month, with its use. All numbers are tokens. */
export interface BudgetState {
  readonly owner: UsageOwner;
  /** The day or the month. */
  readonly period: string;
  readonly limit: number;
  /** Known and estimated. */
  readonly used: number;
  /** Reserved by calls under way. */
  readonly held: number;
}

/** The kinds of owners in messages. */
const nouns: Record<UsageOwnerKind, string> = {
  agent: 'agent',
  deleted_agent: 'deleted agent',
  api_key: 'API key',
  scheduled_job: 'scheduled job',
};

/** Decides on a call that needs `prompt` and `output` tokens, under all budgets that apply to it. */
export function decideReservation(
  { prompt, output }: { prompt: number; output: number },
  budgetStates: readonly BudgetState[],
): Reservation {
  const usedUp = budgetStates.find(({ used, limit }) => used >= limit);
  if (usedUp !== undefined) return { kind: 'exceeded', message: useOf(usedUp) };
  const needed = prompt + Math.min(output, outputMin);
  // Too little is left even without the held tokens, and used tokens never decrease.
  const hopeless = budgetStates.find((state) => unusedOf(state) < needed);
  if (hopeless !== undefined) {
    const { limit } = hopeless;
    return {
      kind: 'exceeded',
      message: `${useOf(hopeless)}: ${formatted(unusedOf(hopeless))} tokens are left of ${formatted(limit)}, and the call needs about ${formatted(needed)}`,
    };
  }
  const short = budgetStates.filter((state) => leftOf(state) < prompt + output);
  if (short.length === 0) return { kind: 'granted', output, reserved: prompt + output };
  const waited = short.find(({ held }) => held > 0);
  if (waited !== undefined) {
    const message = `Waiting for a budget. ${useOf(waited)}; calls under way hold back ${formatted(waited.held)}`;
    return { kind: 'wait', message };
  }
  const left = Math.min(...short.map(leftOf));
  return { kind: 'granted', output: left - prompt, reserved: left };
}

/** Tokens that are left without the held ones. */
function unusedOf({ limit, used }: BudgetState): number {
  return limit - used;
}

/** Tokens that can still be reserved; negative after a limit was lowered. */
export function leftOf({
  limit,
  used,
  held,
}: Pick<BudgetState, 'limit' | 'used' | 'held'>): number {
  return limit - used - held;
}

function useOf({ owner, period, used, limit }: BudgetState): string {
  return `The ${nouns[owner.kind]} ${owner.id} has used ${formatted(used)} of its ${formatted(limit)} tokens for ${period} (UTC)`;
}

const formatted = (tokens: number) => tokens.toLocaleString('en-US');
