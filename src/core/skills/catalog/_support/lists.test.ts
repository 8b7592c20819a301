import { describe, expect, test } from 'vitest';
import { joinLists, listsOnly } from './lists.ts';

const list = { type: 'array', items: { type: 'string' } };
const object = (properties: object, more: object = {}) => ({
  type: 'object',
  additionalProperties: false,
  properties,
  ...more,
});

describe('a schema asks for lists only', () => {
  test.each([
    ['a list', list],
    ['a list without repetitions', { ...list, uniqueItems: true, description: 'Names.' }],
    ['an object of lists', object({ names: list, dates: list }, { required: ['names'] })],
    ['an object with definitions', object({ names: list }, { $defs: { n: {} }, title: 'Names' })],
  ])('%s', (_what, schema) => {
    expect(listsOnly(schema)).toBe(true);
  });

  test.each([
    ['anything', {}],
    ['a text', { type: 'string' }],
    ['an object of nothing', object({})],
    ['an object with a text', object({ names: list, title: { type: 'string' } })],
    ['an object with more than is named', { type: 'object', properties: { names: list } }],
    ['a list of at least one', { ...list, minItems: 1 }],
    ['a list of at most one', object({ names: { ...list, maxItems: 1 } })],
    ['a list with places', object({ names: { ...list, prefixItems: [{}] } })],
    ['a list or null', object({ names: { ...list, type: ['array', 'null'] } })],
    ['a list elsewhere', object({ names: { $ref: '#/$defs/names' } })],
    ['rules between the lists', object({ names: list }, { dependentRequired: {} })],
    ['choices', { anyOf: [list] }],
  ])('%s does not', (_what, schema) => {
    expect(listsOnly(schema)).toBe(false);
  });
});

describe('joined lists', () => {
  test('have every entry once, in the order of the parts', () => {
    expect(joinLists(list, [['b', 'a'], [], ['a', 'c']])).toEqual(['b', 'a', 'c']);
  });

  test('tell entries apart as JSON values', () => {
    const parts = [
      [{ a: 1, b: [{ c: 2, d: 3 }] }, 1],
      [{ b: [{ d: 3, c: 2 }], a: 1 }, '1', { a: 1 }],
    ];

    expect(joinLists(list, parts)).toEqual([{ a: 1, b: [{ c: 2, d: 3 }] }, 1, '1', { a: 1 }]);
  });

  test('of objects are joined by name; a list that no part gave stays away', () => {
    const schema = object({ names: list, dates: list, places: list });
    const parts = [{ names: ['Ada'], dates: [] }, { names: ['Bo', 'Ada'] }];

    expect(joinLists(schema, parts)).toEqual({ names: ['Ada', 'Bo'], dates: [] });
  });

  test('may have any name', () => {
    const schema = object(
      JSON.parse('{"__proto__": {"type": "array"}, "toString": {"type": "array"}}'),
    );
    const joined = joinLists(schema, [JSON.parse('{"__proto__": [1]}'), {}]);

    expect(JSON.stringify(joined)).toBe('{"__proto__":[1]}');
  });
});
