import { describe, expect, test } from 'vitest';
import { KnownModels } from './known-models.ts';
import type { Effort } from './model.ts';

const known = new KnownModels([]);
/** The settings that are sent, and the notes. */
function takenSettings(...call: Parameters<typeof known.takenBy>) {
  const { temperature, effort, notes } = known.takenBy(...call);
  return { temperature, effort, notes };
}

describe('settings that a model takes', () => {
  test.each<[string, { temperature?: number; effort?: Effort }]>([
    ['openai/gpt-4o-mini', { temperature: 2 }],
    ['openai/gpt-4.1', { temperature: 0 }],
    ['openai/o3', { effort: 'high' }],
    ['openai/gpt-5-mini', { effort: 'minimal' }],
    ['openai/gpt-5.2', { effort: 'none', temperature: 0.5 }],
    ['openai/gpt-5-chat-latest', { temperature: 0.5 }],
    ['anthropic/claude-3-5-haiku-latest', { temperature: 1 }],
    ['anthropic/claude-sonnet-4-20250514', { temperature: 1 }],
    ['anthropic/claude-sonnet-4-5', { effort: 'minimal' }],
    ['anthropic/claude-opus-4-6', { effort: 'max' }],
    ['anthropic/claude-opus-4-8', { effort: 'xhigh' }],
    ['openai/a-model-of-tomorrow', { temperature: 1.5, effort: 'max' }],
    ['anthropic/claude-tomorrow', { temperature: 1, effort: 'max' }],
    ['ollama/o3', { temperature: 2, effort: 'xhigh' }],
  ])('%s: %j', (model, settings) => {
    expect(known.faultsOf(model, settings)).toEqual([]);
    expect(takenSettings(model, settings, false)).toEqual({ ...settings, notes: [] });
  });
});

describe('settings that a model is known not to take', () => {
  test.each<[string, { temperature?: number; effort?: Effort }, string, string]>([
    ['openai/o3', { temperature: 0 }, 'temperature', 'takes none'],
    ['openai/o4-mini-2025-04-16', { temperature: 0 }, 'temperature', 'takes none'],
    ['openai/gpt-5', { temperature: 0, effort: 'low' }, 'temperature', 'takes none'],
    ['openai/gpt-5.1', { temperature: 0 }, 'temperature', 'only with the effort none'],
    ['openai/gpt-5', { effort: 'none' }, 'effort', 'minimal, low, medium, high'],
    ['openai/gpt-4o', { effort: 'low' }, 'effort', 'takes none'],
    ['anthropic/claude-3-5-sonnet-latest', { effort: 'low' }, 'effort', 'takes none'],
    ['anthropic/claude-opus-4-5', { effort: 'low', temperature: 1 }, 'temperature', 'beside'],
    ['anthropic/claude-opus-4-7', { temperature: 1 }, 'temperature', 'takes none'],
    ['anthropic/claude-opus-5-5', { effort: 'none' }, 'effort', 'low, medium'],
    ['anthropic/any', { temperature: 1.1 }, 'temperature', 'at most 1'],
    ['gemini/gemini-2.5-pro', { effort: 'none' }, 'effort', 'minimal, low'],
    ['gemini/gemini-3-pro-preview', { effort: 'medium' }, 'effort', 'minimal, low, high'],
    ['gemini/gemini-2.0-flash', { effort: 'low' }, 'effort', 'takes none'],
    ['xai/grok-4', { effort: 'high' }, 'effort', 'takes none'],
    ['groq/llama-3.3-70b-versatile', { effort: 'high' }, 'effort', 'takes none'],
    ['openai/ft:gpt-4o-2024-08-06:org::id', { effort: 'low' }, 'effort', 'takes none'],
  ])('%s: %j', (model, settings, field, words) => {
    expect(known.faultsOf(model, settings)).toEqual([
      { field, issue: expect.stringContaining(words) },
    ]);
    expect(takenSettings(model, settings, false).notes).toEqual([
      `${model} does not take the ${field} that was asked for: it is left out`,
    ]);
  });
});

test.each([
  ['groq/openai/gpt-oss-120b', false],
  ['groq/a-model-of-tomorrow', false],
  ['gemini/gemini-2.5-flash', true],
  ['xai/grok-4', true],
])('%s is held to a schema: %s', (model, isHeld) => {
  expect(known.takenBy(model, {}, false).takesSchema).toBe(isHeld);
});

describe('chat completions with tools', () => {
  test.each([
    'openai/gpt-5.2',
    'openai/gpt-5.2-2025-12-11',
    'openai/gpt-5.4-mini',
    'openai/gpt-5.5',
    'openai/gpt-6',
    'openai/gpt-6-sol',
  ])('of %s get no effort, and the note says so', (model) => {
    expect(takenSettings(model, { effort: 'high' }, false)).toEqual({ effort: 'high', notes: [] });
    expect(takenSettings(model, { effort: 'high' }, true)).toEqual({
      notes: [expect.stringMatching(/with tools: the effort is left out$/)],
    });
    expect(takenSettings(model, { effort: 'none' }, true)).toEqual({ effort: 'none', notes: [] });
    expect(takenSettings(model, {}, true)).toEqual({ notes: [] });
  });

  test('of gpt-5.6 get the effort none, and the note says so', () => {
    for (const effort of ['high', undefined] as const) {
      expect(takenSettings('openai/gpt-5.6', { effort }, true)).toEqual({
        effort: 'none',
        notes: [expect.stringMatching(/with tools: it is called with none$/)],
      });
    }
    expect(takenSettings('openai/gpt-5.6', { effort: 'none' }, true).notes).toEqual([]);
    expect(takenSettings('openai/gpt-5.6', {}, false)).toEqual({ notes: [] });
  });

  test('of other models get it', () => {
    expect(takenSettings('openai/gpt-5.1', { effort: 'low' }, true).effort).toBe('low');
    expect(takenSettings('openai/o3', { effort: 'low' }, true).effort).toBe('low');
    expect(takenSettings('gateway/gpt-5.2', { effort: 'low' }, true).effort).toBe('low');
  });
});

test.each([
  ['anthropic/claude-sonnet-4-5-20250929', 'budget'],
  ['anthropic/claude-3-7-sonnet-latest', 'budget'],
  ['anthropic/claude-sonnet-4-6', 'adaptive'],
  ['anthropic/claude-of-tomorrow', 'adaptive'],
  ['anthropic/another', 'budget'],
])('%s is told to think by %s', (model, form) => {
  expect(known.of(model).thinking ?? 'budget').toBe(form);
});

test.each<[string, Effort | undefined, boolean]>([
  ['openai/o3', undefined, true],
  ['openai/gpt-5-mini', undefined, true],
  ['openai/gpt-5.6', undefined, true],
  ['anthropic/claude-opus-5', undefined, true],
  ['anthropic/claude-sonnet-5', undefined, true],
  ['anthropic/claude-opus-5-5', undefined, true],
  ['anthropic/claude-haiku-5-5', undefined, true],
  ['anthropic/claude-fable-5', undefined, true],
  ['anthropic/claude-opus-6', undefined, true],
  ['anthropic/claude-opus-4-7', undefined, false],
  ['anthropic/claude-opus-4-8', undefined, false],
  ['anthropic/claude-3-5-haiku-latest', undefined, false],
  ['anthropic/another', undefined, false],
  ['openai/gpt-5.2', undefined, false],
  ['openai/gpt-4o', undefined, false],
  ['anthropic/claude-sonnet-4-5', undefined, false],
  ['openai/a-model-of-tomorrow', undefined, false],
  ['openai/gpt-5.6', 'none', false],
  ['anthropic/claude-opus-5', 'none', false],
  ['anthropic/claude-opus-4-8', 'low', true],
  ['openai/a-model-of-tomorrow', 'low', true],
  ['openai/o1-mini', undefined, true],
])('%s with the effort %s reasons: %s', (model, effort, reasons) => {
  expect(known.reasonsWith(model, effort)).toBe(reasons);
});

describe('what the table says', () => {
  test.each<[string, object]>([
    ['openai/gpt-4o-mini-2024-07-18', { contextTokens: 128_000, images: true, schema: true }],
    ['openai/gpt-4o-2024-05-13', { outputTokens: 4_096, schema: false }],
    ['openai/gpt-5-chat-latest', { tools: false, schema: false }],
    ['openai/gpt-5.4-mini', { contextTokens: 400_000 }],
    ['openai/gpt-5.4', { contextTokens: 1_050_000 }],
    ['openai/gpt-6.2-sol', { efforts: ['low', 'medium', 'high', 'xhigh', 'max'], reasons: true }],
    ['openai/gpt-6.1-terra', { efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'] }],
    ['anthropic/claude-sonnet-4-20250514', { schema: false, outputTokens: 64_000 }],
    ['anthropic/claude-opus-4-1-20250805', { schema: true, outputTokens: 32_000 }],
    ['anthropic/claude-opus-4', { schema: false, outputTokens: 32_000 }],
    ['anthropic/claude-haiku-5-5', { contextTokens: 1_000_000, outputTokens: 128_000 }],
    ['ollama/qwen3', {}],
  ])('of %s', (model, abilities) => {
    expect(known.of(model)).toMatchObject(abilities);
  });

  test('bounds the tokens of an agent, and those that it does not set', () => {
    const settings = { context_tokens: 200_000, max_output_tokens: 20_000 };
    expect(known.faultsOf('openai/gpt-4o', settings)).toEqual([
      { field: 'context_tokens', issue: 'must be at most 128000 for openai/gpt-4o' },
      { field: 'max_output_tokens', issue: 'must be at most 16384 for openai/gpt-4o' },
    ]);
    expect(known.faultsOf('ollama/qwen3', settings)).toEqual([]);
    expect(known.windowOf(['openai/gpt-5', 'openai/gpt-3.5-turbo'], 100_000)).toBe(16_385);
    expect(known.windowOf(['openai/gpt-5', 'ollama/qwen3'], 100_000)).toBe(100_000);
  });
});

test('what the operator says counts before the table, and most what names the model', () => {
  const own = new KnownModels([
    { model: 'openai/gpt-4o', abilities: { images: false } },
    { model: 'ollama/qwen3:4b', abilities: { tools: false } },
    { model: 'ollama/qwen3*', abilities: { contextTokens: 40_000, efforts: ['none', 'high'] } },
    { model: 'ollama/*', abilities: { contextTokens: 8_000, tools: true } },
  ]);

  expect(own.of('openai/gpt-4o')).toMatchObject({ images: false, contextTokens: 128_000 });
  expect(own.of('ollama/qwen3:4b')).toEqual({
    tools: false,
    contextTokens: 40_000,
    efforts: ['none', 'high'],
  });
  expect(own.of('ollama/other')).toEqual({ contextTokens: 8_000, tools: true });
  expect(own.faultsOf('ollama/qwen3', { effort: 'low' })).toHaveLength(1);
});
