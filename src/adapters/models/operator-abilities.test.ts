import { expect, test } from 'vitest';
import { readOperatorAbilities } from './operator-abilities.ts';

test('the abilities of models are read by the names of the settings', () => {
  const models = [
    { model: 'ollama/qwen3*', context_tokens: 40_000, efforts: ['none', 'high'], images: false },
    { model: 'gateway/claude', thinking: 'adaptive', temperature: 'never', reasons: true },
  ];

  expect(readOperatorAbilities(JSON.stringify(models))).toEqual({
    models: [
      {
        model: 'ollama/qwen3*',
        abilities: { contextTokens: 40_000, efforts: ['none', 'high'], images: false },
      },
      {
        model: 'gateway/claude',
        abilities: { thinking: 'adaptive', temperature: 'never', reasons: true },
      },
    ],
  });
});

test.each([
  ['{', 'it is not JSON'],
  ['{}', 'it is not a list of models'],
  ['[1]', 'the model 1 is not an object'],
  ['[{"model":"qwen3"}]', 'the model 1 needs a model, as provider/model or provider/*'],
  ['[{"model":"a/b","window":1}]', 'the model 1 has a field window, which there is not'],
  ['[{"model":"a/b"},{"model":"a/c","context_tokens":"8k"}]', 'the model 2 needs context_tokens'],
  ['[{"model":"a/b","efforts":["huge"]}]', 'needs efforts to be a list of none, minimal'],
  ['[{"model":"a/b","temperature":"sometimes"}]', 'needs temperature to be one of always'],
  ['[{"model":"a/b","tools":"yes"}]', 'needs tools to be true or false'],
])('%s is refused: %s', (text, words) => {
  expect(readOperatorAbilities(text)).toEqual({ fault: expect.stringContaining(words) });
});
