import { expect, test } from 'vitest';
import { fieldRows } from './field-rows.ts';

const told = (value: unknown) =>
  fieldRows(value).map(({ depth, name, text }) => `${'  '.repeat(depth)}${name}: ${text ?? ''}`);

test('what is nested stands below its name, lists are numbered from 1', () => {
  expect(
    told({
      total: 129.5,
      express: false,
      customer: { name: 'Ms. Okafor', address: { city: 'Bergen' } },
      parcels: [{ weight: 2 }, { weight: 3 }],
    }),
  ).toEqual([
    'total: 129.5',
    'express: false',
    'customer: ',
    '  name: Ms. Okafor',
    '  address: ',
    '    city: Bergen',
    'parcels: ',
    '  1: ',
    '    weight: 2',
    '  2: ',
    '    weight: 3',
  ]);
});

test('short lists of words are one line; with commas or line breaks in them they are not', () => {
  expect(told({ tags: ['new', 'urgent'], sizes: [1, 2], names: ['Lie, Ola'] })).toEqual([
    'tags: new, urgent',
    'sizes: 1, 2',
    'names: ',
    '  1: Lie, Ola',
  ]);
});

test('what is empty is said to be, and apart from a text that says so', () => {
  const rows = fieldRows({ a: null, b: '', c: [], d: {}, e: 'none' });

  expect(rows.map(({ text, isNote }) => [text, isNote])).toEqual([
    ['none', true],
    ['empty', true],
    ['nothing', true],
    ['nothing', true],
    ['none', false],
  ]);
});

test('what is no object has one line, and what lies too deep is JSON', () => {
  expect(told('Ship it?')).toEqual([': Ship it?']);
  const deep = { a: { b: { c: { d: { e: { f: { g: { h: 1 } } } } } } } };
  expect(told(deep).at(-1)).toBe('            g: {"h":1}');
});

test('each line has a place of its own, whatever names the data has', () => {
  const rows = fieldRows({ 'a.b': { c: 1 }, a: { 'b.c': 2, b: { c: 3 } } });

  expect(new Set(rows.map(({ path }) => path)).size).toBe(rows.length);
});
