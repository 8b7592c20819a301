import { describe, expect, test } from 'vitest';
import { readOperatorPrices } from './operator-prices.ts';
import { costOf, mostCostOf, outputWithin, type Price, priceBodyOf, priceOfBody } from './price.ts';
import { Prices } from './prices.ts';

const at = Date.parse('2026-11-23T12:00:00.000Z');
const usd = 1_000_000_000;
const price = {
  input: 3 * usd,
  cache_read: 0.3 * usd,
  cache_write: 3.75 * usd,
  output: 15 * usd,
  reasoning: 16 * usd,
};

describe('the cost of a call', () => {
  test.each([
    [{ prompt: 1_000, completion: 0 }, 3_000_000],
    [{ prompt: 1_000, completion: 100 }, 4_500_000],
    [{ prompt: 1_000, completion: 100, reasoning: 40 }, 4_540_000],
    [
      { prompt: 1_000, completion: 0, cacheRead: 600, cacheWrite: 300 },
      180_000 + 1_125_000 + 300_000,
    ],
    [{ prompt: 1_000, completion: null }, 3_000_000],
    [{ prompt: null, completion: 2 }, 30_000],
    [{ prompt: 0, completion: 0 }, 0],
    [{ prompt: null, completion: null }, null],
    // More than the safe integers on the way.
    [{ prompt: 1_000_000_000, completion: 1_000_000_000 }, 18_000 * usd],
  ])('of %j is %s nano-dollars', (usage, cost) => {
    expect(costOf(usage, price)).toBe(cost);
  });

  test('counts a part of a nano-dollar as a whole one', () => {
    const cheap = { ...price, input: 7_500_000 };

    expect(costOf({ prompt: 1, completion: 0 }, cheap)).toBe(8);
    expect(costOf({ prompt: 2, completion: 0 }, cheap)).toBe(15);
  });

  test('is bounded by the dearest kinds of tokens, and so is the answer that an amount allows', () => {
    const most = mostCostOf({ prompt: 1_000, output: 100 }, price);

    expect(most).toBe(3_750_000 + 1_600_000);
    expect(outputWithin(most, 1_000, price)).toBe(100);
    expect(outputWithin(most - 1, 1_000, price)).toBe(99);
    expect(outputWithin(3_749_999, 1_000, price)).toBe(-1);
  });
});

describe('a call with a long prompt', () => {
  const long_prompts = { ...price, over: 1_000, input: 6 * usd, cache_write: 7.5 * usd };
  const tariff = { ...price, long_prompts };

  test('costs the rates of long prompts for all of its tokens', () => {
    expect(costOf({ prompt: 1_000, completion: 10 }, tariff)).toBe(3_000_000 + 150_000);
    expect(costOf({ prompt: 1_001, completion: 10 }, tariff)).toBe(6_006_000 + 150_000);
  });

  test('is bounded by these rates where its prompt may be long', () => {
    expect(mostCostOf({ prompt: 1_000, output: 0 }, tariff)).toBe(3_750_000);
    expect(mostCostOf({ prompt: 1_001, output: 0 }, tariff)).toBe(7_507_500);
    expect(outputWithin(7_507_500 + 16_000, 1_001, tariff)).toBe(1);
  });

  test('has them on record with its price, in dollars', () => {
    const known = new Prices([]).at('anthropic/claude-haiku-5-5', at) as Price;
    const body = priceBodyOf(known);

    expect(body).toMatchObject({
      ...{ input: 0.1, cache_read: 0.01, cache_write: 0.125, output: 0.5 },
      long_prompts: {
        over: 100_000,
        input: 0.5,
        cache_read: 0.05,
        cache_write: 0.625,
        output: 2.5,
      },
    });
    expect(priceOfBody(body)).toEqual(known);
  });
});

describe('the price of a model', () => {
  const known = new Prices([]);
  const builtIn = (model: string, now: number) => known.at(model, now);

  test.each([
    ['openai/gpt-6-sol', 2],
    ['openai/gpt-5.2-2025-12-11', 1.75],
    ['anthropic/claude-sonnet-5', 2],
    ['anthropic/claude-opus-4-6', 5],
    ['openai/gpt-4o-mini', 0.15],
    ['openai/gpt-4o-mini-2024-07-18', 0.15],
    ['openai/gpt-4o-2024-05-13', 5],
    ['anthropic/claude-sonnet-4-5-20250929', 3],
    ['anthropic/claude-3-5-haiku-latest', 0.8],
    ['openai/gpt-4o-mini-audio', undefined],
    ['other/gpt-4o-mini', undefined],
    ['openai/test', undefined],
  ])('%s is built in as %s', (model, input) => {
    expect(builtIn(model, at)?.input).toBe(input === undefined ? undefined : input * usd);
  });

  test('is unknown before its first day', () => {
    expect(builtIn('openai/o3', Date.parse('2025-06-09T23:59:59.999Z'))).toBeUndefined();
    expect(builtIn('openai/o3', Date.parse('2025-06-10T00:00:00.000Z'))?.input).toBe(2 * usd);
  });

  const read = readOperatorPrices(
    JSON.stringify([
      { model: 'openai/gpt-4o', from: '2026-11-01', input: 2, output: 9 },
      { model: 'openai/gpt-4o', from: '2026-12-01', input: 1, output: 8, cache_read: 0.5 },
      { model: 'openai/*', from: '2026-01-01', input: 7, output: 7 },
      { model: 'openai/gpt-5*', from: '2026-01-01', input: 6, output: 6 },
      { model: 'ollama/*', from: '2026-01-01', input: 0, output: 0 },
    ]),
  );
  const prices = new Prices('prices' in read ? read.prices : []);
  const priceAt = (model: string, now: number) => prices.at(model, now);

  test.each([
    ['openai/gpt-4o', '2026-11-23', 2],
    ['openai/gpt-4o', '2026-12-01', 1],
    ['openai/gpt-4o', '2026-10-31', 7],
    ['openai/gpt-4o', '2025-12-31', 2.5],
    ['openai/gpt-5-mini', '2026-11-23', 6],
    ['openai/other', '2026-11-23', 7],
    ['ollama/llama3', '2026-11-23', 0],
    ['anthropic/claude-opus-4-1', '2026-11-23', 15],
  ])('%s on %s is the operator’s where there is one: %s', (model, day, input) => {
    expect(priceAt(model, Date.parse(day))?.input).toBe(input * usd);
  });

  test('has the input’s price for caches, and the output’s for reasoning, where the operator sets none', () => {
    expect(priceAt('openai/gpt-4o', Date.parse('2026-12-01'))).toEqual({
      from: '2026-12-01',
      source: 'operator',
      input: usd,
      cache_read: 0.5 * usd,
      cache_write: usd,
      output: 8 * usd,
      reasoning: 8 * usd,
    });
  });
});

test.each([
  ['{', /is not JSON/],
  ['{}', /not a list/],
  ['[1]', /price 1 is not an object/],
  ['[{"model":"gpt","from":"2026-01-01","input":1,"output":1}]', /needs a model/],
  ['[{"model":"a/b","from":"2026-02-30","input":1,"output":1}]', /needs from/],
  ['[{"model":"a/b","from":"2026-01-01","input":1}]', /needs output/],
  ['[{"model":"a/b","from":"2026-01-01","input":-1,"output":1}]', /needs input/],
  ['[{"model":"a/b","from":"2026-01-01","input":1,"output":1,"cached":1}]', /a field cached/],
  [
    `[${Array(2).fill('{"model":"a/b","from":"2026-01-01","input":1,"output":1}').join(',')}]`,
    /price 2 is a second one of a\/b 2026-01-01/,
  ],
])('an operator’s prices %s are refused', (text, fault) => {
  expect(readOperatorPrices(text)).toEqual({ fault: expect.stringMatching(fault) });
});
