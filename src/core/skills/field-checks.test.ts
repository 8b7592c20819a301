import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { reservedScopes } from '../../kernel/caller.ts';
import { checkCategory, reservedCategories } from './field-checks.ts';

const operations = '../../../packages/client/src/generated/operations.ts';

test('the first path segments of all operations are reserved', () => {
  const text = readFileSync(new URL(operations, import.meta.url), 'utf8');
  const segments = new Set([...text.matchAll(/path: '\/api\/([a-z-]+)/g)].map(([, name]) => name));

  expect(segments).toContain('jobs');
  expect([...segments].filter((name) => !reservedCategories.has(name ?? ''))).toEqual([]);
  expect(checkCategory('batches')).toBe('must not be "batches", a reserved word');
});

test('the guide of skills names all reserved categories', () => {
  const text = readFileSync(new URL('../../../docs/skills.md', import.meta.url), 'utf8');
  const paragraph = text.split('\n\n').find((one) => one.startsWith('A category is a slug')) ?? '';
  const named = [...paragraph.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '');

  const [, , ...reserved] = named;
  expect(new Set(reserved)).toEqual(new Set([...reservedCategories, ...reservedScopes]));
});
