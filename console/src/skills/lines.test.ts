import { expect, test } from 'vitest';
import { linesOf } from './lines.ts';
import { typeText } from './schema.ts';

const pathsOf = (schema: object) => linesOf(schema as never).lines.map(({ path }) => path);

test('the lines of a schema are its properties, and theirs below them', () => {
  const schema = {
    properties: {
      a: { type: 'string' },
      b: { properties: { c: { type: 'array', items: { properties: { d: {} } } } } },
    },
    additionalProperties: { type: 'number' },
  };
  expect(pathsOf(schema)).toEqual(['/a', '/b', '/b/c', '/b/c[]/d', '/*']);
  expect(linesOf(schema).isWhole).toBe(true);
});

test('an option without properties has no line', () => {
  const oneOf = [{ type: 'string' }, { title: 'A', properties: { a: {} } }];
  expect(linesOf({ oneOf }).lines.map(({ name }) => name)).toEqual(['as A', 'a']);
});

/** As many names as letters, each of which is the schema again. */
const again = Object.fromEntries(
  [...'abcdefghijklmnopqrstuvwxyz'].map((name) => [name, { $ref: '#' }]),
);

test.each([
  ['a list of itself', { type: 'array', items: { $ref: '#' } }],
  ['properties that are itself', { properties: again }],
  ['options that are itself', { type: 'array', items: { anyOf: Object.values(again) } }],
])('of a schema that is %s only some lines are made', (_what, schema) => {
  const { lines, isWhole } = linesOf(schema);
  expect(lines.length).toBeLessThanOrEqual(400);
  expect(isWhole).toBe(false);
});

test('a type of many options that have many options has a short text', () => {
  const anyOf = Array.from({ length: 1_000 }, () => ({
    type: 'array',
    items: { $ref: '#/$defs/a' },
  }));
  const schema = { $ref: '#/$defs/a', $defs: { a: { anyOf } } };
  expect(typeText(schema, schema).length).toBeLessThan(10_000);
});
