import { expect, test } from 'vitest';
import { closedSchema, isStrictSchema, openAiSchema } from './sent-schemas.ts';

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

const text = { type: 'string' };
const closed = (properties: object, required: string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

test.each<[string, object, object | null]>([
  [
    'its bounds left out',
    { type: 'object', required: ['a'], properties: { a: { ...text, minLength: 1 } } },
    closed({ a: text }, ['a']),
  ],
  [
    'objects in lists and choices closed',
    closed({ a: { type: 'array', items: { type: 'object', properties: { b: text } } } }),
    closed({
      a: { type: 'array', items: { ...closed({ b: text }), required: undefined } },
    }),
  ],
  ['nothing where an object is open', closed({ a: { type: 'object' } }), null],
  ['nothing where it has values of any name', { ...closed({}), additionalProperties: text }, null],
  ['nothing where it refers to itself', closed({ a: { $ref: '#' } }), null],
  [
    'nothing where too much may be left out',
    closed(Object.fromEntries([...'abcdefghijk'].map((name) => [name, text]))),
    null,
  ],
])('a schema is closed with %s', (_, schema, expected) => {
  expect(closedSchema(schema as Record<string, unknown>)).toEqual(expected);
});

test('the parameters of a tool are as OpenAI takes them, and properties may have the names of keywords', () => {
  const schema = {
    type: 'object',
    propertyNames: { maxLength: 5 },
    properties: {
      propertyNames: { type: 'string', pattern: '^(?!a)b' },
      list: { type: 'array', items: { type: 'string', pattern: '^a(?:b|c)$' } },
      any: { enum: [{ propertyNames: 1 }], anyOf: [{ type: ['string', 'array'] }, true] },
    },
  };

  expect(openAiSchema(schema)).toEqual({
    type: 'object',
    properties: {
      propertyNames: { type: 'string' },
      list: { type: 'array', items: { type: 'string', pattern: '^a(?:b|c)$' } },
      any: {
        enum: [{ propertyNames: 1 }],
        anyOf: [{ type: ['string', 'array'], items: {} }, true],
      },
    },
  });
  expect(openAiSchema({ type: 'object' })).toEqual({ type: 'object', properties: {} });
  expect(openAiSchema(schema)).toBe(openAiSchema(schema));
});
