/** The settings of an agent's model as the texts that a form has, and back. */
import type { Schema } from '../api/client.ts';
import { readNumber } from './numbers.ts';

export type ModelSettings = NonNullable<Schema<'Agent'>['model_settings']>;
type SettingName = keyof ModelSettings;
export type SettingTexts = Readonly<Partial<Record<SettingName, string>>>;

/** In the order of the form. */
const names = [
  'max_output_tokens',
  'context_tokens',
  'temperature',
  'effort',
  'timeout_ms',
  'first_byte_timeout_ms',
  'wait_for_provider',
] as const satisfies readonly SettingName[];

/** The names under which the fields show an issue of their own. */
export const settingIssues = names.map((name) => `model_settings.${name}`);

export function settingTexts(settings: ModelSettings | null): SettingTexts {
  const given = names.flatMap((name) => {
    const value = settings?.[name] ?? null;
    return value === null ? [] : [[name, String(value)]];
  });
  return Object.fromEntries(given);
}

/** Text that is not a number is sent unchanged, so that the platform refuses it with its own message. */
export function settingsOf(texts: SettingTexts): ModelSettings | null {
  const given = names.flatMap((name) => {
    const text = texts[name]?.trim() ?? '';
    return text === '' ? [] : [[name, sentValue(name, text)]];
  });
  return given.length === 0 ? null : Object.fromEntries(given);
}

export const isSame = (one: ModelSettings | null, other: ModelSettings | null) =>
  JSON.stringify(settingTexts(one)) === JSON.stringify(settingTexts(other));

function sentValue(name: SettingName, text: string): string | number {
  if (name === 'effort') return text;
  return readNumber(text, { isDecimal: name === 'temperature' }) ?? text;
}
