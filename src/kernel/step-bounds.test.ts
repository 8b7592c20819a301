import { expect, test } from 'vitest';
import { isLongerThan } from './step-bounds.ts';

test.each([
  ['abc', 3, false],
  ['abcd', 3, true],
  ['🦊🦊🦊', 3, false],
  ['🦊🦊🦊a', 3, true],
  ['🦊🦊🦊🦊', 3, true],
])('whether %s has more than %i characters, each counted once, is %s', (text, max, is) => {
  expect(isLongerThan(text, max)).toBe(is);
});
