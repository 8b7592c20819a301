import { expect, test } from 'vitest';
import { allows, trySkill } from '../../../../../test/support/try-skill.ts';
import echo from './echo.ts';

test.each(['', 'hello', 'Zürich 東京 🏔️', ' spaces\n\t'])('%j comes back as it is', async (text) => {
  expect(await trySkill(echo, { text })).toEqual({ text });
});

test.each([{}, { text: 1 }, { text: null }, { text: 'a', more: 1 }, 'a', null])(
  '%j is refused',
  (input) => {
    expect(allows(echo.parameters, input)).toBe(false);
  },
);
