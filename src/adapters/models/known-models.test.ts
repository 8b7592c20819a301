import { describe, expect, test } from 'vitest';
import { reasonsWith, settingsFaults, takenSettings, thinkingOf } from './known-models.ts';
import type { Effort } from './model.ts';

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
    expect(settingsFaults(model, settings)).toEqual([]);
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
  ])('%s: %j', (model, settings, field, words) => {
    expect(settingsFaults(model, settings)).toEqual([
      { field, issue: expect.stringContaining(words) },
    ]);
    expect(takenSettings(model, settings, false).notes).toEqual([
      `${model} does not take the ${field} that was asked for: it is left out`,
    ]);
  });
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
  expect(thinkingOf(model)).toBe(form);
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
  expect(reasonsWith(model, effort)).toBe(reasons);
});
