/** Validates the settings that a skill declares; every fault is the end of a sentence that begins with `config`. */
import { isObject } from '../../../kernel/json.ts';
import { isCleanText } from '../../../kernel/text.ts';
import { valueBytesMax } from '../settings-rules.ts';

const settingsMax = 50;
const namePattern = /^[A-Z][A-Z0-9_]{0,63}$/;
const descriptionCharsMax = 500;
const fields: readonly string[] = ['description', 'secret', 'required', 'default'];

/** The fault of the value as the settings of a skill, or undefined. */
export function settingsFault(value: unknown): string | undefined {
  if (!isObject(value))
    return 'must be an object of settings, such as { API_KEY: { description } }';
  const settings = Object.entries(value);
  if (settings.length > settingsMax) {
    return `must have at most ${settingsMax} settings, has ${settings.length}`;
  }
  for (const [name, setting] of settings) {
    if (!namePattern.test(name)) {
      const shown = JSON.stringify(name.slice(0, 80));
      return `must have names like API_KEY of at most 64 characters, got ${shown}`;
    }
    const fault = settingFault(setting);
    if (fault !== undefined) return `${name} ${fault}`;
  }
  return undefined;
}

function settingFault(setting: unknown): string | undefined {
  if (!isObject(setting)) return 'must be an object with a description';
  const unknown = Object.keys(setting).find((field) => !fields.includes(field));
  if (unknown !== undefined) return `has the unknown field ${JSON.stringify(unknown.slice(0, 80))}`;
  const { description, default: byDefault } = setting;
  if (typeof description !== 'string' || description.trim() === '')
    return 'must have a description';
  if (description.length > descriptionCharsMax || !isCleanText(description)) {
    return `must have a description of at most ${descriptionCharsMax} characters without NUL`;
  }
  for (const field of ['secret', 'required']) {
    const flag = setting[field];
    if (flag !== undefined && typeof flag !== 'boolean') return `${field} must be true or false`;
  }
  if (byDefault === undefined) return undefined;
  if (setting['secret'] === true) {
    return 'must have no default, because a secret in the code of a skill is none';
  }
  return isValue(byDefault)
    ? undefined
    : `must have as default a text of 1 to ${valueBytesMax} bytes without NUL`;
}

function isValue(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    value !== '' &&
    Buffer.byteLength(value) <= valueBytesMax &&
    isCleanText(value)
  );
}
