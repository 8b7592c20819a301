import type { RJSFSchema } from '@rjsf/utils';
import { describe, expect, test } from 'vitest';
import { formSchema } from './form-schema.ts';
import { validator } from './validator.ts';

/** The form of one property `it`. */
function formOf(schema: object, root: object = {}) {
  const { schema: form, uiSchema } = formSchema({
    type: 'object',
    properties: { it: schema },
    ...root,
  });
  return {
    schema: (form.properties?.['it'] ?? {}) as Record<string, unknown>,
    ui: uiSchema['it'] as Record<string, unknown>,
  };
}
const isJson = (schema: object, root?: object) => formOf(schema, root).ui['ui:field'] === 'json';

test('a schema that leads to itself many times at each level has a form of few levels', () => {
  const names = [...'abcdefghijklmnopqrstuvwxyz'];
  const properties = Object.fromEntries(names.map((name) => [name, { $ref: '#' }]));
  const { schema, uiSchema } = formSchema({ type: 'object', properties });
  expect(Object.keys(schema.properties ?? {})).toEqual(names);
  expect(uiSchema['z']?.['z']).toBeUndefined();
  expect(JSON.stringify(schema).length).toBeLessThan(100_000);
});

describe('the form of a schema', () => {
  test.each([
    ['anything', {}],
    ['a free object', { type: 'object' }],
    ['an object of anything', { type: 'object', additionalProperties: true }],
    ['several types at once', { type: ['string', 'object'] }],
    ['a list of anything', { type: 'array', items: {} }],
    ['a tuple', { type: 'array', prefixItems: [{ type: 'string' }] }],
  ])('has JSON for %s', (_what, schema) => {
    expect(isJson(schema)).toBe(true);
  });

  test.each([
    ['a text', { type: 'string' }],
    ['a choice without a type', { enum: ['a', 1] }],
    ['a map of texts', { type: 'object', additionalProperties: { type: 'string' } }],
    ['a list of numbers', { type: 'array', items: { type: 'number' } }],
    ['one of two shapes', { oneOf: [{ type: 'string' }, { type: 'number' }] }],
  ])('has fields for %s', (_what, schema) => {
    expect(isJson(schema)).toBe(false);
  });

  test('follows references', () => {
    const root = { $defs: { name: { type: 'string', description: 'A name.' } } };

    expect(formOf({ $ref: '#/$defs/name' }, root).schema).toMatchObject({
      type: 'string',
      description: 'A name.',
    });
  });

  test('ends where a schema contains itself, with JSON', () => {
    const tree = { type: 'object', properties: { child: { $ref: '#/$defs/tree' } } };

    const { schema, uiSchema } = formSchema({ ...tree, $defs: { tree } });

    expect(schema.properties).toHaveProperty('child');
    expect(JSON.stringify(uiSchema)).toContain('"ui:field":"json"');
  });

  test.each([
    ['anyOf', { anyOf: [{ type: 'string' }, { type: 'null' }] }],
    ['type', { type: ['string', 'null'] }],
  ])('has one field for a text or null (%s)', (_keyword, schema) => {
    const form = formOf(schema);

    expect(form.schema).toMatchObject({ type: 'string' });
    expect(form.schema).not.toHaveProperty('anyOf');
  });

  test('tells defaults and fills none in', () => {
    const form = formOf({ type: 'integer', default: 5 });

    expect(form.schema).not.toHaveProperty('default');
    expect(form.ui['ui:options']).toMatchObject({ standard: 5 });
  });

  test('leaves rules that name no shape to the platform', () => {
    const { schema } = formSchema({
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'string' } },
      oneOf: [{ required: ['a'] }, { required: ['b'] }],
    });

    expect(schema).not.toHaveProperty('oneOf');
  });
});

describe('which option some data is', () => {
  const root: RJSFSchema = { $defs: { named: { type: 'object', required: ['name'] } } };

  test('is found out without code of its own, references included', () => {
    const schema = { $ref: '#/$defs/named' } as const;

    expect(validator.isValid(schema, { name: 'a', other: undefined }, root)).toBe(true);
    expect(validator.isValid(schema, { other: 1 }, root)).toBe(false);
    expect(validator.isValid({ type: 'string' }, undefined, root)).toBe(false);
  });

  test('is none of a schema that cannot be read', () => {
    expect(validator.isValid({ $ref: '#/$defs/nowhere' }, {}, root)).toBe(false);
  });
});
