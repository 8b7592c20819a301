import { expect, test } from 'vitest';
import { isSame, settingsOf, settingTexts } from './model-settings.ts';

test('settings become texts and the same settings again', () => {
  const settings = { temperature: 0.2, max_output_tokens: 8_000, effort: 'low' } as const;
  const texts = settingTexts({ ...settings, timeout_ms: null });
  expect(texts).toEqual({ temperature: '0.2', max_output_tokens: '8000', effort: 'low' });
  expect(settingsOf(texts)).toEqual(settings);
  expect(isSame(settingsOf(texts), settings)).toBe(true);
});

test('texts that are all empty are no settings', () => {
  expect(settingsOf({ effort: '', temperature: ' ' })).toBe(null);
  expect(settingTexts(null)).toEqual({});
});

test('commas group the digits of whole numbers, and make no other number of a temperature', () => {
  expect(
    settingsOf({ max_output_tokens: '8,000', temperature: '0,2', timeout_ms: 'soon' }),
  ).toEqual({ max_output_tokens: 8_000, temperature: '0,2', timeout_ms: 'soon' });
  expect(isSame(settingsOf({ temperature: '0.' }), settingsOf({ temperature: '0' }))).toBe(true);
});
