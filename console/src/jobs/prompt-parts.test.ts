import { expect, test } from 'vitest';
import { partsOfPrompt, shownJson } from './prompt-parts.ts';

const difference = {
  same: ['model'],
  changed: [
    {
      field: 'messages',
      same: 2,
      removed: [{ role: 'user', content: 'old' }],
      added: [{ role: 'assistant' }, 'odd'],
      same_at_end: 1,
    },
    { field: 'temperature', before: 1 },
    { field: 'max_tokens', before: 1, after: 2 },
  ],
};

test('the new parts are marked, and the others counted', () => {
  const parts = partsOfPrompt(difference, null);

  expect(parts.map(({ title, change }) => [title, change])).toEqual([
    ['messages: 2 as before', 'same'],
    ['messages 3: user', 'removed'],
    ['messages 3: assistant', 'added'],
    ['messages 4', 'added'],
    ['messages: 1 as before', 'same'],
    ['temperature', 'removed'],
    ['max_tokens', 'removed'],
    ['max_tokens', 'added'],
    ['model, as before', 'same'],
  ]);
  expect(new Set(parts.map(({ key }) => key)).size).toBe(parts.length);
});

test('with all of it each part has its value', () => {
  const messages = ['a', 'b', { role: 'assistant' }, 'odd', 'e'];
  const parts = partsOfPrompt(difference, { model: 'm', messages, max_tokens: 2 });

  const shown = parts.filter(({ change }) => change !== 'removed').map(({ value }) => value);
  expect(shown).toEqual([...messages, 2, 'm']);
});

test('text that turns or hides text is written out, and a long one is cut', () => {
  expect(shownJson('a\u202eb\u200bc</script>')).toBe('"a\\u202eb\\u200bc</script>"');
  expect(shownJson('x'.repeat(200_000)).length).toBeLessThan(100_100);
});
