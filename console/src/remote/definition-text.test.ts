import { expect, test } from 'vitest';
import { claimsOf, definitionText } from './definition-text.ts';

test('a definition is shown whole, with its invisible characters written out', () => {
  const text = definitionText({
    ...{ title: null, description: 'Echoes.\u200b', output: null },
    ...{ input: { type: 'object' }, request: { method: 'GET', baseUrl: 'https://a.example' } },
  });
  expect(text).toContain('description: Echoes.⟨U+200B⟩');
  expect(text).toContain('"baseUrl": "https://a.example"');
  expect(text).toContain('"type": "object"');
});

test('the claims of a server are those that it makes', () => {
  expect(claimsOf({ readOnlyHint: false, destructiveHint: true, openWorldHint: 'yes' })).toEqual([
    'writes',
    'destructive',
  ]);
  expect(claimsOf({})).toEqual([]);
});
