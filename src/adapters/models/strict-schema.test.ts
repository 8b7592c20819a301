import { expect, test } from 'vitest';
import { isStrictSchema } from './strict-schema.ts';

const object = (properties: object, required = Object.keys(properties), rest: object = {}) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
  ...rest,
});

test.each([
  ['an object with all properties required', object({ a: { type: 'string' } })],
  ['without properties', object({})],
  ['objects in objects', object({ a: object({ b: { enum: [1, 2] } }) })],
  ['lists', object({ a: { type: 'array', items: object({ b: { type: 'number' } }) } })],
  ['alternatives', object({ a: { anyOf: [{ type: 'null' }, object({})] } })],
  ['a property with the name of a keyword', object({ pattern: { type: 'string' } })],
])('%s fits strict mode', (_what, schema) => {
  expect(isStrictSchema(schema)).toBe(true);
});

test.each([
  ['no schema', undefined],
  ['what is no object', { type: 'array', items: { type: 'string' } }],
  ['an optional property', object({ a: { type: 'string' } }, [])],
  ['an open object', { type: 'object', properties: {} }],
  ['an open object within', object({ a: { type: 'object' } })],
  ['an open object in a list', object({ a: { type: 'array', items: { type: 'object' } } })],
  ['an open alternative', object({ a: { anyOf: [{ type: 'object' }] } })],
  ['a keyword that it may not know', object({ a: { type: 'string', format: 'uri' } })],
  ['references', object({ a: { $ref: '#' } })],
])('strict mode is not used with %s', (_what, schema) => {
  expect(isStrictSchema(schema)).toBe(false);
});
