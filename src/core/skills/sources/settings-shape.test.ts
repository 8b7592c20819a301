import { describe, expect, test } from 'vitest';
import { settingsFault } from './settings-shape.ts';

const one = (setting: unknown) => ({ API_KEY: setting });
const description = 'A key.';

describe('the settings of a skill', () => {
  test.each([
    [{}],
    [one({ description })],
    [one({ description, secret: true, required: false })],
    [one({ description, default: 'eu' })],
    [Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`A_${i}`, { description }]))],
  ])('may be %j', (value) => {
    expect(settingsFault(value)).toBeUndefined();
  });

  test.each([
    [[], 'must be an object of settings'],
    [{ apiKey: { description } }, 'got "apiKey"'],
    [{ [`A${'B'.repeat(64)}`]: { description } }, 'at most 64 characters'],
    [one('text'), 'API_KEY must be an object'],
    [one({}), 'API_KEY must have a description'],
    [one({ description: 'x'.repeat(501) }), 'at most 500 characters'],
    [one({ description, secrets: true }), 'unknown field "secrets"'],
    [one({ description, secret: 'yes' }), 'secret must be true or false'],
    [one({ description, default: '' }), 'as default a text'],
    [one({ description, default: 1 }), 'as default a text'],
    [one({ description, default: 'ä'.repeat(5_000) }), 'as default a text'],
    [one({ description, secret: true, default: 'abcd' }), 'must have no default'],
    [
      Object.fromEntries(Array.from({ length: 51 }, (_, i) => [`A_${i}`, { description }])),
      'at most 50 settings',
    ],
  ])('may not be %j', (value, fault) => {
    expect(settingsFault(value)).toContain(fault);
  });
});
