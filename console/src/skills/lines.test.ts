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

/** A schema that counts how often it is read. */
function countedSchema(given: Readonly<Record<string, unknown>>) {
  let reads = 0;
  const schema = Object.defineProperty({ ...given }, '$comment', {
    enumerable: true,
    get: () => String(++reads),
  });
  return { schema, reads: () => reads };
}

test.each([
  ['a list of itself', { type: 'array', items: { $ref: '#' } }],
  ['properties that are itself', { properties: again }],
  ['options that are itself', { type: 'array', items: { anyOf: Object.values(again) } }],
  ['options of options that are itself', { anyOf: Object.values(again) }],
])('of a schema that is %s only some lines are made', (_what, schema) => {
  const counted = countedSchema(schema);
  const { lines, isWhole } = linesOf(counted.schema);
  for (const line of lines) typeText(line.schema, counted.schema);
  expect(lines.length).toBeLessThanOrEqual(400);
  expect(isWhole).toBe(false);
  expect(counted.reads()).toBeLessThan(400_000);
});

test('the text of options of options that are itself is made of some of them', () => {
  const { schema, reads } = countedSchema({ anyOf: Object.values(again) });
  typeText(schema, schema);
  expect(reads()).toBeLessThan(1_000);
});

test('a type of many options that have many options has a short text', () => {
  const anyOf = Array.from({ length: 1_000 }, () => ({
    type: 'array',
    items: { $ref: '#/$defs/a' },
  }));
  const schema = { $ref: '#/$defs/a', $defs: { a: { anyOf } } };
  expect(typeText(schema, schema).length).toBeLessThan(10_000);
});
