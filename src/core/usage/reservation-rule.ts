/**
 * The rule of reservations: whether a call is granted, and for how many tokens, has to wait, or is
 * refused. Pure. If each call reserves what the rule grants, and uses no more, no budget is exceeded.
 */
import type { UsageOwnerKind } from '../../adapters/database/tables.ts';
import { mostCostOf, outputWithin, type Tariff } from '../../adapters/models/price.ts';
import { usdOf } from '../../kernel/money.ts';
import type { Reservation, UsageOwner } from './reservations.ts';

/** The least tokens of an answer for which a call is made, unless it needs more. */
export const outputMin = 16;
/** Where a shorter answer is enough for a call, the part of a budget's rest that it reserves for a longer one. */
const restPart = 1 / 4;
/** A call reserves less than it needs only where it saves this part of it: it may have to be made once more. */
const savingMin = 1 / 2;

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
  /** The least tokens of the answer for which the call is made; `outputMin` unless set. */
  readonly least?: number | undefined;
  /** The tokens of the answer for which the call waits. Of more it leaves a part for others; `output` unless set. */
  readonly enough?: number | undefined;
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
  const { output, price, share = 1 } = need;
  const unpriced = budgetStates.find(({ unit }) => unit === 'cost' && price === null);
  if (unpriced !== undefined) return { kind: 'unpriced', message: unpricedBy(need, unpriced) };
  // A budget in money does not limit a call that costs nothing.
  const states = budgetStates.filter((state) => needOf(state, need, output) > 0);
  const least = leastOf(need);
  const usedUp = states.find((state) => state.used >= state.limit);
  if (usedUp !== undefined) return { kind: 'exceeded', message: useOf(usedUp) };
  // Too little is left even without the held amount, and what is used never decreases.
  const hopeless = states.find((state) => unusedOf(state) < needOf(state, need, least));
  if (hopeless !== undefined) {
    return { kind: 'exceeded', message: shortageOf(hopeless, needOf(hopeless, need, least)) };
  }
  const tooSmall = states.find(
    (state) => share < 1 && leftOf(state) * share < needOf(state, need, least),
  );
  if (tooSmall !== undefined) {
    const message = `${useOf(tooSmall)}: the call needs more than its share of what is left`;
    return { kind: 'exceeded', message };
  }
  const waited = states.find(
    (state) => state.held > 0 && leftOf(state) < needOf(state, need, floorUnder(state, need)),
  );
  if (waited !== undefined) {
    const message = `Waiting for a budget. ${useOf(waited)}; calls under way hold back ${amount(waited, waited.held)}`;
    return { kind: 'wait', message };
  }
  return granted(need, Math.min(output, ...states.map((state) => outputUnder(state, need))));
}

function leastOf({ output, least = 0 }: ReservationNeed): number {
  return Math.min(output, Math.max(outputMin, least));
}

/** The tokens of the answer for which the call waits for this budget. */
function floorUnder(state: BudgetState, need: ReservationNeed): number {
  const { output, enough = output } = need;
  const floor = Math.min(output, Math.max(leastOf(need), enough));
  const saved = needOf(state, need, output) - needOf(state, need, floor);
  return saved < needOf(state, need, output) * savingMin ? output : floor;
}

/** The most tokens of the answer that the call may reserve of this budget, without those that it leaves for others. */
function outputUnder(state: BudgetState, need: ReservationNeed): number {
  const { output } = need;
  const left = leftOf(state);
  if (left >= 2 * needOf(state, need, output)) return output;
  const floor = floorUnder(state, need);
  // No other call would fit beside this one.
  if (left < 2 * needOf(state, need, floor)) return outputFor(state, need, left);
  return Math.max(floor, outputFor(state, need, Math.floor(left * restPart)));
}

/** The longest answer of a call that needs at most so much of a budget. */
function outputFor(
  { unit }: BudgetState,
  { prompt, price }: ReservationNeed,
  amount: number,
): number {
  return unit === 'tokens' ? amount - prompt : outputWithin(amount, prompt, price as Tariff);
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
