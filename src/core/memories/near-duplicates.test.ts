import { expect, test } from 'vitest';
import { likenessOf } from './near-duplicates.ts';

test.each([
  ['Ada prefers short answers.', 'ada prefers short answers'],
  ['Ada prefers short answers.', 'Ada really prefers the very short answers!'],
  ['User lives in Basel', 'The user now lives in Basel.'],
  ['She prefers a short answer in the morning', 'She preferred short answers in the morning'],
  ['Er mag die langen Antworten nicht', 'Er mag lange Antworten nicht'],
  ['Ada prefers short answers.', 'Ada prefers short answers, in German.'],
  ['Ada prefers short answers.', 'Ada prefers short answers. She lives in Basel.'],
  ['彼女は緑茶が好きです。', '彼女は緑茶が好きです'],
])('%s | %s says the same', (before, after) => {
  expect(likenessOf(before, after)).toBe('same');
});

test.each([
  ["Alice's salary is 5,000", "Alice's salary is 6,000"],
  ['The budget is 5000 euros a month', 'The budget is 7.500 euros a month'],
  ['Das Gehalt von Anna beträgt 5.000 Euro', 'Das Gehalt von Anna beträgt 6.000 Euro'],
  ['Alice is 30', 'Alice is 31'],
])('%s | %s gives another number', (before, after) => {
  expect(likenessOf(before, after)).toBe('changed');
});

test.each([
  ['Order 4711 was delivered', 'Order 4712 was delivered'],
  ['Alice has 2 cats', 'Alice has 3 cats'],
  ['The salary of Alice is 5,000', 'The salary of Bob is 5,000'],
  ['The salary of Alice is 5,000', 'The salary of Bob is 6,000'],
  ['Mario likes the tea of the shop', 'Maria likes the tea of the shop'],
  ['a mario piace il te che ha la casa', 'a maria piace il te che ha la casa'],
  ['Alice likes tea', 'Alice likes coffee'],
  ['Alice likes tea', 'Alice does not like tea'],
  ['Alice likes tea', "Alice's brother likes tea"],
  ['Alice likes green', 'Alice likes green tea'],
  ['User has no allergies', 'User has no allergies to nuts'],
  ['The red key opens A, not B', 'The red key opens B, not A'],
  ['The flight goes to Rome', 'The flight goes from Rome'],
  ['Ada prefers short answers, in German', 'Ada prefers short answers'],
  ['The price is 5', 'The price is 5 for members, and more for guests of the house'],
  ["Alice's manager is Bob", "Alice's manager is Carol"],
  ['Alice works at the university', 'Alice works at the universe'],
  ['...', '!!!'],
])('%s | %s are two memories', (before, after) => {
  expect(likenessOf(before, after)).toBeNull();
});

test('a long text replaces only an equal one', () => {
  const long = 'Ada prefers short answers. '.repeat(200);
  expect(likenessOf(long, `${long.toUpperCase()}\n`)).toBe('same');
  expect(likenessOf(long, `${long} In German.`)).toBeNull();
});
