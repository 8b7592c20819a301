import { expect, test } from 'vitest';
import { claimsOf, definitionText } from './definition-text.ts';

test('a definition is shown whole, with its invisible characters written out', () => {
  const text = definitionText({
    ...{ title: null, description: 'Echoes.\u200b\u{e0100}\ufe0f\ufe01', output: null },
    ...{ input: { type: 'object' }, request: { method: 'GET', baseUrl: 'https://a.example' } },
  });
  expect(text).toContain('description: Echoes.⟨U+200B⟩⟨U+E0100⟩⟨U+FE0F⟩⟨U+FE01⟩');
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
