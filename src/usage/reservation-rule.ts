/**
 * The rule of reservations: whether a call is granted, and for how many tokens, has to wait, or is
 * refused. Pure. If each call reserves what the rule grants, and uses no more, no budget is exceeded.
 */
import type { UsageOwnerKind } from '../database/tables.ts';
import { usdOf } from '../kernel/money.ts';
import { mostCostOf, outputWithin, type Tariff } from '../models/price.ts';
import type { Reservation, UsageOwner } from './reservations.ts';

/** The least tokens of an answer for which a call is made. */
export const outputMin = 16;

/** The jobs of agents that give tasks to each other, by the one at the top; bounded as a whole. */
export interface TreeOwner {
  readonly kind: 'tree';
  readonly id: string;
}

/** A budget for a day or month, or another bound on tokens, with its use. */
export interface BudgetState {
  readonly owner: UsageOwner | TreeOwner;
  /** The day or the month; null for a bound without one. */
  readonly period: string | null;
  /** Of the numbers: tokens, or nano-dollars. */
  readonly unit: 'tokens' | 'cost';
  readonly limit: number;
  /** Known and estimated. */
  readonly used: number;
  /** Reserved by calls under way. */
  readonly held: number;
}

/** What a call needs: tokens, and the model that it asks for them. */
export interface ReservationNeed {
  /** The most tokens that its prompt can have. */
  readonly prompt: number;
  /** The most tokens of the answer. */
  readonly output: number;
  readonly model: string;
  /** Null where it is unknown. */
  readonly price: Tariff | null;
  /** Of what each budget has left, the most that the call may hold; all of it unless set. */
  readonly share?: number;
}

/** The kinds of owners in messages. */
const nouns: Record<UsageOwnerKind | TreeOwner['kind'], string> = {
  agent: 'agent',
  deleted_agent: 'deleted agent',
  api_key: 'API key',
  scheduled_job: 'scheduled job',
  user: 'user',
  skill: 'skill',
  embedding_model: 'embedding model',
  tree: 'tree of agents below the job',
};

/** Decides on a call under all budgets that apply to it. */
export function decideReservation(
  need: ReservationNeed,
  budgetStates: readonly BudgetState[],
): Reservation {
  const { prompt, output, price, share = 1 } = need;
  const unpriced = budgetStates.find(({ unit }) => unit === 'cost' && price === null);
  if (unpriced !== undefined) return { kind: 'unpriced', message: unpricedBy(need, unpriced) };
  const least = Math.min(output, outputMin);
  const usedUp = budgetStates.find(
    (state) => state.used >= state.limit && needOf(state, need, least) > 0,
  );
  if (usedUp !== undefined) return { kind: 'exceeded', message: useOf(usedUp) };
  // Too little is left even without the held amount, and what is used never decreases.
  const hopeless = budgetStates.find((state) => unusedOf(state) < needOf(state, need, least));
  if (hopeless !== undefined) {
    return { kind: 'exceeded', message: shortageOf(hopeless, needOf(hopeless, need, least)) };
  }
  const tooSmall = budgetStates.find(
    (state) => share < 1 && leftOf(state) * share < needOf(state, need, least),
  );
  if (tooSmall !== undefined) {
    const message = `${useOf(tooSmall)}: the call needs more than its share of what is left`;
    return { kind: 'exceeded', message };
  }
  const short = budgetStates.filter((state) => leftOf(state) < needOf(state, need, output));
  if (short.length === 0) return granted(need, output);
  const waited = short.find(({ held }) => held > 0);
  if (waited !== undefined) {
    const message = `Waiting for a budget. ${useOf(waited)}; calls under way hold back ${amount(waited, waited.held)}`;
    return { kind: 'wait', message };
  }
  const outputs = short.map((state) =>
    state.unit === 'tokens'
      ? leftOf(state) - prompt
      : outputWithin(leftOf(state), prompt, price as Tariff),
  );
  return granted(need, Math.min(...outputs));
}

function granted({ prompt, price }: ReservationNeed, output: number): Reservation {
  const reservedCost = price === null ? 0 : mostCostOf({ prompt, output }, price);
  return { kind: 'granted', output, reserved: prompt + output, reservedCost };
}

/** What a call with an answer of so many tokens needs of a budget. */
function needOf({ unit }: BudgetState, { prompt, price }: ReservationNeed, output: number): number {
  return unit === 'tokens' ? prompt + output : mostCostOf({ prompt, output }, price as Tariff);
}

/** What is left without the held amount. */
function unusedOf({ limit, used }: BudgetState): number {
  return limit - used;
}

/** What can still be reserved; negative after a limit was lowered. */
export function leftOf({
  limit,
  used,
  held,
}: Pick<BudgetState, 'limit' | 'used' | 'held'>): number {
  return limit - used - held;
}

function shortageOf(state: BudgetState, needed: number): string {
  const { unit, limit } = state;
  const left = amount(state, unusedOf(state));
  return unit === 'tokens'
    ? `${useOf(state)}: ${left} tokens are left of ${amount(state, limit)}, and the call needs about ${amount(state, needed)}`
    : `${useOf(state)}: ${left} are left, and the call needs up to ${amount(state, needed)}`;
}

function useOf(state: BudgetState): string {
  const { owner, period, unit, used, limit } = state;
  const noun = unit === 'tokens' ? ' tokens' : '';
  const during = period === null ? '' : ` for ${period} (UTC)`;
  return `The ${nouns[owner.kind]} ${owner.id} has used ${amount(state, used)} of its ${amount(state, limit)}${noun}${during}`;
}

function unpricedBy({ model }: ReservationNeed, { owner }: BudgetState): string {
  return `The ${nouns[owner.kind]} ${owner.id} has a budget in US dollars, and the price of the model ${model} is not known: set it in MODEL_PRICES`;
}

function amount({ unit }: Pick<BudgetState, 'unit'>, number: number): string {
  if (unit === 'tokens') return number.toLocaleString('en-US');
  return `$${usdOf(number).toLocaleString('en-US', { maximumFractionDigits: 9 })}`;
}
