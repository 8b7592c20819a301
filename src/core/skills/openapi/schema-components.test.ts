/** Schemas of skills as components of an OpenAPI document. */
import { expect, test } from 'vitest';
import { cpuMsOf } from '../../../../test/support/cpu-time.ts';
import { doubling } from '../../../../test/support/hostile-schemas.ts';
import { patient } from '../../../../test/support/wait-for.ts';
import { componentsOf } from './schema-components.ts';

const anything = {
  In: { description: 'Any JSON: the registry has the schema of the skill.' },
};

test('a schema without references is one component, without what names it', () => {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'https://example.com/in',
    type: 'object',
    properties: { $ref: { type: 'string' }, definitions: { const: { $ref: '#/no-reference' } } },
  };
  const { $schema: _, $id: __, ...rest } = schema;
  expect(componentsOf('In', schema)).toEqual({ In: rest });
});

test('definitions become components of their own, also those that refer to themselves', () => {
  const schema = {
    type: 'object',
    properties: { tree: { $ref: '#/$defs/tree~1node' }, root: { $ref: '#' } },
    $defs: {
      'tree/node': {
        properties: { under: { type: 'array', items: { $ref: '#/$defs/tree~1node' } } },
      },
      unused: { type: 'string' },
    },
  };
  expect(componentsOf('In', schema)).toEqual({
    In: {
      type: 'object',
      properties: {
        tree: { $ref: '#/components/schemas/In_tree_node' },
        root: { $ref: '#/components/schemas/In' },
      },
    },
    In_tree_node: {
      properties: {
        under: { type: 'array', items: { $ref: '#/components/schemas/In_tree_node' } },
      },
    },
  });
});

test('definitions whose names look the same as a component stay apart', () => {
  const schema = {
    anyOf: [{ $ref: '#/$defs/a.b' }, { $ref: '#/$defs/a%2Bb' }, { $ref: '#/definitions/a.b' }],
    $defs: { 'a.b': { const: 1 }, 'a+b': true },
    definitions: { 'a.b': false },
  };
  expect(componentsOf('In', schema)).toEqual({
    In: {
      anyOf: [
        { $ref: '#/components/schemas/In_a_b' },
        { $ref: '#/components/schemas/In_a_b_2' },
        { $ref: '#/components/schemas/In_a_b_3' },
      ],
    },
    In_a_b: { const: 1 },
    In_a_b_2: {},
    In_a_b_3: { not: {} },
  });
});

test('references to other places lead to the same places inside the components', () => {
  const schema = {
    properties: { a: { type: 'string' }, b: { $ref: '#/properties/a' } },
    items: { $ref: '#/$defs/c/properties/d' },
    $defs: { c: { properties: { d: { type: 'null' } } } },
  };
  expect(componentsOf('In', schema)).toEqual({
    In: {
      properties: { a: { type: 'string' }, b: { $ref: '#/components/schemas/In/properties/a' } },
      items: { $ref: '#/components/schemas/In_c/properties/d' },
    },
    In_c: { properties: { d: { type: 'null' } } },
  });
});

test('a tuple of draft-07 is written as one of 2020-12', () => {
  const schema = { items: [{ type: 'string' }, { type: 'null' }], additionalItems: false };
  expect(componentsOf('In', schema)).toEqual({
    In: { prefixItems: [{ type: 'string' }, { type: 'null' }], items: false },
  });
});

test.each([
  ['a name', { $ref: '#name', $defs: { a: { $anchor: 'name' } } }],
  ['another document', { $ref: 'https://example.com/schema' }],
  ['a schema with an id', { $ref: '#/$defs/a', $defs: { a: { $id: 'urn:a' } } }],
  ['what the caller decides', { items: { $dynamicRef: '#node' } }],
  ['an item of a tuple', { items: [{ type: 'null' }, { $ref: '#/items/0' }] }],
  ['nothing', { $ref: '#/$defs/none' }],
  ['three hundred definitions in turn', doubling((next) => ({ items: next }), 300)],
  ['a broken pointer', { $ref: '#/$defs/%', $defs: {} }],
])('a schema that refers to %s is any value', (_what, schema) => {
  expect(componentsOf('In', schema)).toEqual(anything);
});

test('two hundred definitions in turn are placed', () => {
  const schema = doubling((next) => ({ items: next }), 200);
  expect(Object.keys(componentsOf('In', schema))).toHaveLength(202);
});

test('thousands of definitions whose names differ in no letter are numbered', async () => {
  const names = Array.from({ length: 5_000 }, (_, i) => String.fromCodePoint(0x4e00 + i));
  const $defs = Object.fromEntries(names.map((name) => [name, {}]));
  const anyOf = names.map((name) => ({ $ref: `#/$defs/${name}` }));
  let placed: string[] = [];
  const took = await cpuMsOf(() => {
    placed = Object.keys(componentsOf('In', { $defs, anyOf }));
  });
  expect(placed).toEqual(expect.arrayContaining(['In', 'In__', 'In___2', 'In___5000']));
  expect(took).toBeLessThan(patient(500));
});
