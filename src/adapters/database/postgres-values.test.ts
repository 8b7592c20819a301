import pg from 'pg';
import { expect, test } from 'vitest';
import { toArray } from './postgres-values.ts';

/** How PostgreSQL's type `text[]` is read. */
const readTexts = pg.types.getTypeParser(1009 as never) as (text: string) => unknown;

test.each([
  ['nothing', []],
  ['plain texts', ['a', 'b-1', '0193b0b0-0b0b-7b0b']],
  ['texts that PostgreSQL would read as something else', ['', 'NULL', 'null', '{}', 'a,b', ' c ']],
  ['quotes and backslashes', ['"', '\\', '\\\\"', '{"text":"He said \\"no\\""}', '\\n', '\\u0041']],
  ['control characters', ['line\nline', '\t\r\b\f', '\u0001\u001f\u007f', '\\\n', 'a"\n\\b']],
  ['other writing systems', ['ä', '你好', '😀', '\u2028']],
])('a list of %s is read as it was', (_, items) => {
  expect(readTexts(toArray(items))).toEqual(items);
});

test('a text that is no valid Unicode is left as it is', () => {
  expect(toArray(['\ud800'])).toBe('{"\ud800"}');
});

test('numbers, booleans and values that are not set are not quoted', () => {
  expect(toArray([1_763_900_000_000, -1.5, true, null, undefined])).toBe(
    '{1763900000000,-1.5,true,null,null}',
  );
  expect(toArray(['\n', 1, null, undefined])).toBe('{"\n",1,null,null}');
});
