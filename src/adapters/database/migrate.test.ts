import { expect, test } from 'vitest';
import { knownMigrations } from './migrate.ts';

test('the migrations are numbered from 1, each number once', () => {
  const numbers = knownMigrations.map((name) => Number(name.slice(0, 4)));

  expect(numbers).toEqual(numbers.map((_, i) => i + 1));
});
