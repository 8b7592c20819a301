import { expect, test } from 'vitest';
import { moneyText } from './Money.ts';

test.each([
  [0, false, '$0.00'],
  [12.5, false, '$12.50'],
  [0.123456, false, '$0.1235'],
  [0.00345678, false, '$0.0035'],
  [0.00000014, false, '$0.00000014'],
  [1.5, true, 'at least $1.50'],
  [null, true, 'unknown'],
])('an amount of %s dollars is read as it is', (usd, isPartial, text) => {
  expect(moneyText(usd, isPartial)).toBe(text);
});
