import { describe, expect, test } from 'vitest';
import { type BudgetState, decideReservation, leftOf, outputMin } from './reservation-rule.ts';

const state = (fields: Partial<BudgetState> = {}): BudgetState => ({
  owner: { kind: 'agent', id: 'support' },
  period: '2026-11-21',
  unit: 'tokens',
  limit: 1_000,
  used: 0,
  held: 0,
  ...fields,
});
const wanted = { prompt: 200, output: 300, model: 'a/model', price: null };

describe('a call', () => {
  test('gets the tokens it asks for without a budget, and when all budgets have enough left', () => {
    const whole = { kind: 'granted', output: 300, reserved: 500, reservedCost: 0 };

    expect(decideReservation(wanted, [])).toEqual(whole);
    expect(
      decideReservation(wanted, [state({ used: 300, held: 200 }), state({ used: 1 })]),
    ).toEqual(whole);
  });

  test('waits while calls under way hold the tokens that it needs', () => {
    expect(decideReservation(wanted, [state({ used: 500, held: 1 })])).toMatchObject({
      kind: 'wait',
    });
    expect(decideReservation(wanted, [state({ held: 1_000 })])).toMatchObject({ kind: 'wait' });
    expect(decideReservation(wanted, [state({ used: 600 }), state({ held: 600 })])).toEqual({
      kind: 'wait',
      message:
        'Waiting for a budget. The agent support has used 0 of its 1,000 tokens for 2026-11-21 (UTC); calls under way hold back 600',
    });
  });

  test('does not wait when too little would be left even without the held tokens', () => {
    expect(
      decideReservation(wanted, [state({ held: 500 }), state({ used: 785, held: 100 })]),
    ).toEqual({
      kind: 'exceeded',
      message:
        'The agent support has used 785 of its 1,000 tokens for 2026-11-21 (UTC): 215 tokens are left of 1,000, and the call needs about 216',
    });
    expect(decideReservation(wanted, [state({ used: 784, held: 100 })])).toMatchObject({
      kind: 'wait',
    });
  });

  test('does not wait for calls that hold no tokens of the short budget', () => {
    const roomy = state({ limit: 10_000, held: 600 });

    expect(decideReservation(wanted, [state({ used: 600 }), roomy])).toMatchObject({
      kind: 'granted',
    });
  });

  test('gets the rest, and so a shorter answer, when no tokens are held', () => {
    expect(decideReservation(wanted, [state({ used: 501 })])).toEqual({
      kind: 'granted',
      output: 299,
      reserved: 499,
      reservedCost: 0,
    });
    expect(decideReservation(wanted, [state({ used: 600 }), state({ used: 700 })])).toEqual({
      kind: 'granted',
      output: 100,
      reserved: 300,
      reservedCost: 0,
    });
  });

  test(`is not made for an answer of fewer than ${outputMin} tokens`, () => {
    const left = (tokens: number) => state({ used: 1_000 - tokens });

    expect(decideReservation(wanted, [left(216)])).toMatchObject({ output: 16, reserved: 216 });
    expect(decideReservation(wanted, [left(215)])).toEqual({
      kind: 'exceeded',
      message:
        'The agent support has used 785 of its 1,000 tokens for 2026-11-21 (UTC): 215 tokens are left of 1,000, and the call needs about 216',
    });
  });

  test('for a short answer gets the last tokens', () => {
    const short = { ...wanted, output: 5 };

    expect(decideReservation(short, [state({ used: 795 })])).toMatchObject({
      output: 5,
      reserved: 205,
    });
    expect(decideReservation(short, [state({ used: 796 })])).toMatchObject({
      kind: 'exceeded',
      message: expect.stringContaining('needs about 205'),
    });
  });
});

describe('a budget that is used up', () => {
  test.each([
    [{}, 'The agent support has used 1,000 of its 1,000 tokens for 2026-11-21 (UTC)'],
    [
      { owner: { kind: 'api_key', id: 'k' }, period: '2026-11', used: 1_234_567 },
      'The API key k has used 1,234,567 of its 1,000 tokens for 2026-11 (UTC)',
    ],
    [
      { owner: { kind: 'scheduled_job', id: 'j' }, limit: 1, used: 1 },
      'The scheduled job j has used 1 of its 1 tokens for 2026-11-21 (UTC)',
    ],
  ] satisfies [Partial<BudgetState>, string][])('is named: %j', (fields, message) => {
    const usedUp = state({ used: 1_000, ...fields });

    expect(decideReservation(wanted, [state(), usedUp])).toEqual({ kind: 'exceeded', message });
  });

  test('refuses also while calls under way hold tokens, of this budget or another', () => {
    const usedUp = state({ used: 1_000, held: 10 });

    expect(decideReservation(wanted, [state({ held: 1_000 }), usedUp])).toMatchObject({
      kind: 'exceeded',
    });
  });
});

describe('a budget in money', () => {
  const usd = 1_000_000_000;
  const price = {
    input: usd,
    cache_read: usd,
    cache_write: 2 * usd,
    output: 10 * usd,
    reasoning: 10 * usd,
  };
  /** It needs 200 × 2,000 + 300 × 10,000 nano-dollars. */
  const priced = { ...wanted, price };
  const money = (fields: Partial<BudgetState> = {}) =>
    state({ unit: 'cost', limit: 10_000_000, ...fields });

  test('grants a call by the dearest kinds of its tokens', () => {
    expect(decideReservation(priced, [money({ used: 6_600_000 })])).toEqual({
      kind: 'granted',
      output: 300,
      reserved: 500,
      reservedCost: 3_400_000,
    });
  });

  test('limits the answer to what is left, and a budget in tokens may limit it further', () => {
    const short = money({ used: 8_600_001 });

    expect(decideReservation(priced, [short])).toMatchObject({
      output: 99,
      reservedCost: 1_390_000,
    });
    expect(decideReservation(priced, [short, state({ used: 750 })])).toMatchObject({
      output: 50,
      reserved: 250,
      reservedCost: 900_000,
    });
  });

  test('has a call wait for what others hold, and refuses one that cannot fit', () => {
    expect(decideReservation(priced, [money({ used: 100, held: 9_000_000 })])).toEqual({
      kind: 'wait',
      message:
        'Waiting for a budget. The agent support has used $0.0000001 of its $0.01 for 2026-11-21 (UTC); calls under way hold back $0.009',
    });
    expect(decideReservation(priced, [money({ used: 9_500_000 })])).toEqual({
      kind: 'exceeded',
      message:
        'The agent support has used $0.0095 of its $0.01 for 2026-11-21 (UTC): $0.0005 are left, and the call needs up to $0.00056',
    });
    expect(decideReservation(priced, [money({ used: 10_000_000 })])).toMatchObject({
      kind: 'exceeded',
      message: 'The agent support has used $0.01 of its $0.01 for 2026-11-21 (UTC)',
    });
  });

  test('refuses a model whose price is unknown, because it could not hold', () => {
    expect(decideReservation(wanted, [money()])).toEqual({
      kind: 'unpriced',
      message:
        'The agent support has a budget in US dollars, and the price of the model a/model is not known: set it in MODEL_PRICES',
    });
  });

  test.each([10_000_000, 10_000_001])(
    'that is used up does not refuse a model that costs nothing: %i',
    (used) => {
      const free = { input: 0, cache_read: 0, cache_write: 0, output: 0, reasoning: 0 };

      expect(decideReservation({ ...wanted, price: free }, [money({ used })])).toEqual({
        kind: 'granted',
        output: 300,
        reserved: 500,
        reservedCost: 0,
      });
    },
  );
});

describe('a call for which a shorter answer is enough', () => {
  /** The whole answer needs 8,200 tokens, and the shorter one 1,200. */
  const sharing = { ...wanted, output: 8_000, enough: 1_000 };
  const left = (tokens: number, held = 0) => state({ limit: tokens + held, held });

  test('gets the whole where as much is left for another one', () => {
    expect(decideReservation(sharing, [left(16_400)])).toMatchObject({ output: 8_000 });
  });

  test('gets a quarter of what is left where that is less, and the shorter answer at least', () => {
    expect(decideReservation(sharing, [left(16_399)])).toMatchObject({ reserved: 4_099 });
    expect(decideReservation(sharing, [left(8_000)])).toMatchObject({ reserved: 2_000 });
    expect(decideReservation(sharing, [left(4_799)])).toMatchObject({ reserved: 1_200 });
    expect(decideReservation(sharing, [left(2_400)])).toMatchObject({ reserved: 1_200 });
  });

  test('gets all that is left where no other call would fit beside it', () => {
    expect(decideReservation(sharing, [left(2_399)])).toMatchObject({ reserved: 2_399 });
    expect(decideReservation(sharing, [left(1_200, 50)])).toMatchObject({ reserved: 1_200 });
    expect(decideReservation(sharing, [left(300)])).toMatchObject({ output: 100, reserved: 300 });
  });

  test('waits while others hold the tokens of the shorter answer', () => {
    expect(decideReservation(sharing, [left(1_199, 50)])).toMatchObject({ kind: 'wait' });
  });

  test('gets what the scarcest budget allows', () => {
    expect(decideReservation(sharing, [left(8_000), left(20_000), left(6_000)])).toMatchObject({
      reserved: 1_500,
    });
  });

  test('gets the whole where less would save less than half of it', () => {
    const long = { ...sharing, prompt: 6_001 };

    expect(decideReservation(long, [left(20_000)])).toMatchObject({ output: 8_000 });
    expect(decideReservation(long, [left(14_000, 1)])).toMatchObject({ kind: 'wait' });
    expect(decideReservation({ ...long, prompt: 6_000 }, [left(14_000, 1)])).toMatchObject({
      output: 1_000,
    });
  });

  test('shares a budget in money by what its tokens cost at most', () => {
    const price = { input: 1e9, cache_read: 1e9, cache_write: 2e9, output: 1e10, reasoning: 1e10 };
    const money = state({ unit: 'cost', limit: 100_000_000 });

    // The whole needs 80.4 million nano-dollars; a quarter is 25 million.
    expect(decideReservation({ ...sharing, price }, [money])).toEqual({
      kind: 'granted',
      output: 2_460,
      reserved: 2_660,
      reservedCost: 25_000_000,
    });
  });

  test('that are begun one after the other are more than one, and never exceed the budget', () => {
    let held = 0;
    let calls = 0;
    for (;;) {
      const decision = decideReservation(sharing, [state({ limit: 9_000, held })]);
      if (decision.kind !== 'granted') break;
      held += decision.reserved;
      calls += 1;
    }

    expect(calls).toBe(6);
    expect(held).toBeLessThanOrEqual(9_000);
  });
});

describe('a call with a least answer', () => {
  const again = { ...wanted, least: 200 };

  test('is refused where no call can leave so much for it', () => {
    expect(decideReservation(again, [state({ used: 600 })])).toMatchObject({ output: 200 });
    expect(decideReservation(again, [state({ used: 601 })])).toMatchObject({ kind: 'exceeded' });
    expect(decideReservation(again, [state({ used: 600, held: 100 })])).toMatchObject({
      kind: 'wait',
    });
  });

  test('has the usual least, and no more than its whole answer', () => {
    expect(decideReservation({ ...wanted, least: 0 }, [state({ used: 785 })])).toMatchObject({
      kind: 'exceeded',
    });
    expect(decideReservation({ ...wanted, least: 9_000 }, [state({ used: 500 })])).toMatchObject({
      output: 300,
    });
  });
});

test('a lowered limit can leave a negative rest', () => {
  expect(leftOf({ limit: 100, used: 90, held: 30 })).toBe(-20);
});
