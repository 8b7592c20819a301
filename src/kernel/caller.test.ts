import { describe, expect, test } from 'vitest';
import { hasScopes, requireScopes } from './caller.ts';

describe('scopes are compared exactly', () => {
  test.each<[string[], string[]]>([
    [['text'], ['text']],
    [['web', 'text'], ['text']],
    [
      ['text', 'web'],
      ['web', 'text'],
    ],
    [['*'], ['text', 'web']],
    [['text'], []],
  ])('%j opens %j', (scopes, required) => {
    expect(hasScopes(scopes, required)).toBe(true);
    expect(() => requireScopes(scopes, required)).not.toThrow();
  });

  test.each<[string[], string[]]>([
    [['a'], ['ab']],
    [['ab'], ['a']],
    [['a'], ['A']],
    [['a,b'], ['a']],
    [['a*'], ['ab']],
    [['text'], ['text', 'web']],
    [['a', '*'], ['b']],
    [[], ['a']],
    [['**'], ['a']],
  ])('%j does not open %j', (scopes, required) => {
    expect(hasScopes(scopes, required)).toBe(false);
    expect(() => requireScopes(scopes, required)).toThrow(
      expect.objectContaining({ code: 'insufficient_scope' }),
    );
  });

  test('a refusal names the scopes that are missing and no others', () => {
    expect(() => requireScopes(['text'], ['text', 'web', 'data'])).toThrow(
      'This key lacks the scope web, data',
    );
  });
});
