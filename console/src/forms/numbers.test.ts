import { expect, test } from 'vitest';
import { numberOf } from './numbers.ts';

test('an empty field is no number', () => {
  expect([numberOf(''), numberOf(' ')]).toEqual([null, null]);
});

test('whole numbers may have their digits grouped by three', () => {
  expect(['50000', '50,000', '1 000 000', '1_000', ' 7 '].map((text) => numberOf(text))).toEqual([
    50_000, 50_000, 1_000_000, 1_000, 7,
  ]);
});

test('what is no number, or could be another one, is sent as it is', () => {
  const texts = ['12,5', '1,00', '1,0000', 'many', 'Infinity', '1 2'];
  expect(texts.map((text) => numberOf(text))).toEqual(texts);
});

test('an amount of money has a decimal point, and no comma, which could be one too', () => {
  const usd = (text: string) => numberOf(text, { isDecimal: true });
  expect(['12.5', '0.000001', '1 250.50', '25'].map(usd)).toEqual([12.5, 0.000_001, 1_250.5, 25]);
  expect(['12,5', '12,500', '1,250.50'].map(usd)).toEqual(['12,5', '12,500', '1,250.50']);
});
