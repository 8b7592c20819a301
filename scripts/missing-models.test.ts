import { expect, test } from 'vitest';
import { KnownModels } from '../src/adapters/models/known-models.ts';
import { priceLines } from '../src/adapters/models/model-table.ts';
import { Prices } from '../src/adapters/models/prices.ts';
import { missingOf } from './missing-models.ts';

const now = Date.parse('2026-11-29');
const known = new KnownModels([{ model: 'ollama/*', abilities: { contextTokens: 8_000 } }]);
const prices = new Prices([]);

test('what is not known of a model is named', () => {
  const missing = missingOf(
    ['openai/gpt-6-sol', 'openai/o1-pro', 'ollama/qwen3'],
    known,
    prices,
    now,
  );

  expect(Object.fromEntries(missing)).toEqual({
    'openai/o1-pro': ['price'],
    'ollama/qwen3': ['outputTokens', 'efforts', 'temperature', 'images', 'schema', 'price'],
  });
});

test('the abilities of every model with a built-in price are known', () => {
  const models = priceLines.map(([model]) => model);

  expect(Object.fromEntries(missingOf(models, known, prices, now))).toEqual({});
});
