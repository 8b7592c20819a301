import { describe, expect, test } from 'vitest';
import { decide, leftOf, outputMin, type Standing } from './rule.ts';

const standing = (fields: Partial<Standing> = {}): Standing => ({
  owner: { kind: 'agent', id: 'support' },
  period: '2026-11-21',
  limit: 1_000,
  used: 0,
  held: 0,
  ...fields,
});
const wanted = { prompt: 200, output: 300 };

describe('a call', () => {
  test('gets all that it wants where there is no budget, and where all have enough left', () => {
    const whole = { kind: 'granted', output: 300, reserved: 500 };

    expect(decide(wanted, [])).toEqual(whole);
    expect(decide(wanted, [standing({ used: 300, held: 200 }), standing({ used: 1 })])).toEqual(
      whole,
    );
  });

  test('waits while calls under way hold back what it is short of', () => {
    expect(decide(wanted, [standing({ used: 500, held: 1 })])).toMatchObject({ kind: 'wait' });
    expect(decide(wanted, [standing({ held: 1_000 })])).toMatchObject({ kind: 'wait' });
    expect(decide(wanted, [standing({ used: 600 }), standing({ held: 600 })])).toEqual({
      kind: 'wait',
      message:
        'Waiting for a budget. The agent support has used 0 of its 1,000 tokens for 2026-11-21 (UTC); calls under way hold back 600',
    });
  });

  test('does not wait where too little would be left even if nothing were held back', () => {
    expect(decide(wanted, [standing({ held: 500 }), standing({ used: 785, held: 100 })])).toEqual({
      kind: 'exceeded',
      message:
        'The agent support has used 785 of its 1,000 tokens for 2026-11-21 (UTC): 215 tokens are left of 1,000, and the call needs about 216',
    });
    expect(decide(wanted, [standing({ used: 784, held: 100 })])).toMatchObject({ kind: 'wait' });
  });

  test('does not wait for calls that hold back nothing that it is short of', () => {
    const roomy = standing({ limit: 10_000, held: 600 });

    expect(decide(wanted, [standing({ used: 600 }), roomy])).toMatchObject({ kind: 'granted' });
  });

  test('gets the rest, and so a shorter answer, where nothing is held back', () => {
    expect(decide(wanted, [standing({ used: 501 })])).toEqual({
      kind: 'granted',
      output: 299,
      reserved: 499,
    });
    expect(decide(wanted, [standing({ used: 600 }), standing({ used: 700 })])).toEqual({
      kind: 'granted',
      output: 100,
      reserved: 300,
    });
  });

  test(`is not made for an answer of fewer than ${outputMin} tokens`, () => {
    const left = (tokens: number) => standing({ used: 1_000 - tokens });

    expect(decide(wanted, [left(216)])).toMatchObject({ output: 16, reserved: 216 });
    expect(decide(wanted, [left(215)])).toEqual({
      kind: 'exceeded',
      message:
        'The agent support has used 785 of its 1,000 tokens for 2026-11-21 (UTC): 215 tokens are left of 1,000, and the call needs about 216',
    });
  });

  test('that wants a short answer gets it to the last token', () => {
    const short = { prompt: 200, output: 5 };

    expect(decide(short, [standing({ used: 795 })])).toMatchObject({ output: 5, reserved: 205 });
    expect(decide(short, [standing({ used: 796 })])).toMatchObject({
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
  ] satisfies [Partial<Standing>, string][])('is named: %j', (fields, message) => {
    const usedUp = standing({ used: 1_000, ...fields });

    expect(decide(wanted, [standing(), usedUp])).toEqual({ kind: 'exceeded', message });
  });

  test('refuses also while calls under way hold back tokens, here or elsewhere', () => {
    const usedUp = standing({ used: 1_000, held: 10 });

    expect(decide(wanted, [standing({ held: 1_000 }), usedUp])).toMatchObject({ kind: 'exceeded' });
  });
});

test('less than nothing is left where a limit was lowered', () => {
  expect(leftOf({ limit: 100, used: 90, held: 30 })).toBe(-20);
});
