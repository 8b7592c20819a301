import { describe, expect, test } from 'vitest';
import { type BudgetState, decideReservation, leftOf, outputMin } from './reservation-rule.ts';

const state = (fields: Partial<BudgetState> = {}): BudgetState => ({
  owner: { kind: 'agent', id: 'support' },
  period: '2026-11-21',
  limit: 1_000,
  used: 0,
  held: 0,
  ...fields,
});
const wanted = { prompt: 200, output: 300 };

describe('a call', () => {
  test('gets the tokens it asks for without a budget, and when all budgets have enough left', () => {
    const whole = { kind: 'granted', output: 300, reserved: 500 };

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
    });
    expect(decideReservation(wanted, [state({ used: 600 }), state({ used: 700 })])).toEqual({
      kind: 'granted',
      output: 100,
      reserved: 300,
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
    const short = { prompt: 200, output: 5 };

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

test('a lowered limit can leave a negative rest', () => {
  expect(leftOf({ limit: 100, used: 90, held: 30 })).toBe(-20);
});
