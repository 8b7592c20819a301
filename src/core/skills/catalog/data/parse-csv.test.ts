import { describe, expect, test } from 'vitest';
import { allows, trySkill } from '../../../../../test/support/try-skill.ts';
import parseCsv from './parse-csv.ts';

const parse = (text: string, more = {}) => trySkill(parseCsv, { text, ...more });

test.each([
  [',', 'a,b\n1,2\n'],
  [';', 'a;b\n1,5;2\n'],
  ['\t', 'a\tb\n1\t2\n'],
  ['|', 'a|b\n1|2\n'],
  [';', '"x,y,z";b\n"1,2,3";2\n'],
  [',', 'only\n1\n'],
  [',', ''],
])('%j is found out to be the delimiter of %j', async (delimiter, text) => {
  expect((await parse(text)).delimiter).toBe(delimiter);
});

test('a delimiter that is given is not found out', async () => {
  const { columns } = await parse('a,b:c\n1,2:3\n', { delimiter: ':' });

  expect(columns).toEqual(['a,b', 'c']);
});

test('quotes, line ends, empty lines and a byte order mark are understood', async () => {
  const text = '\uFEFFname,note\r\n"Ada ""the"" first","two\r\nlines"\r\n\r\nBob,\r\n';

  expect((await parse(text)).rows).toEqual([
    { name: 'Ada "the" first', note: 'two\r\nlines' },
    { name: 'Bob', note: '' },
  ]);
});

test('names of columns are made distinct', async () => {
  const { columns, rows } = await parse('a,,a,__proto__,constructor\n1,2,3,4,5\n');

  expect(columns).toEqual(['a', 'column_2', 'a_2', '__proto__', 'constructor']);
  expect(Object.entries(rows[0] ?? {})).toHaveLength(5);
  expect(({} as { 0?: unknown })[0]).toBeUndefined();
});

test('without a header rows are lists', async () => {
  expect(await parse('1,2\n3,4\n', { header: false })).toMatchObject({
    columns: null,
    rows: [
      ['1', '2'],
      ['3', '4'],
    ],
    row_count: 2,
  });
});

test('columns become numbers or booleans only as a whole and without loss', async () => {
  const text = [
    'n,f,zip,id,yes,mixed,empty',
    '1,1.5,01234,12345678901234567890,true,1,',
    ',-2e3,8000,1,FALSE,x,',
  ].join('\n');

  const { rows } = await parse(text, { infer_types: true });

  expect(rows).toEqual([
    { n: 1, f: 1.5, zip: '01234', id: '12345678901234567890', yes: true, mixed: '1', empty: '' },
    { n: null, f: -2000, zip: '8000', id: '1', yes: false, mixed: 'x', empty: '' },
  ]);
  expect((await parse(text)).rows[0]).toMatchObject({ n: '1', yes: 'true' });
});

test.each([
  ['a,b\n1,2\n', 2, 1, false],
  ['a,b\n1,2\n3,4\n', 1, 1, true],
  ['a,b\n', 5, 0, false],
])('of %j at most %i rows are returned', async (text, max_rows, count, truncated) => {
  expect(await parse(text, { max_rows })).toMatchObject({ row_count: count, truncated });
});

test('rows that an output cannot hold are left out', async () => {
  const long = `${'name'.repeat(50)}\n${'x\n'.repeat(20_000)}`;

  const { rows, truncated } = await parse(long, { max_rows: 100_000 });

  expect(truncated).toBe(true);
  expect(JSON.stringify(rows).length).toBeLessThan(1_000_000);
});

describe('CSV that is broken names the line', () => {
  test.each([
    ['a,b\n1,2\n1,2,3\n', 'line 3 does not have as many values'],
    ['a,b\n1\n', 'line 2 does not have as many values'],
    ['a,b\n"1,2\n', 'a quoted value has no end'],
    ['a,b\n1"x,2\n', 'line 2 has a quote in the middle'],
    ['a,b\n"1"x,2\n', 'line 2 has text behind a closing quote'],
  ])('%j', async (text, message) => {
    await expect(parse(text)).rejects.toMatchObject({
      message: expect.stringContaining(message),
      retryable: false,
    });
  });
});

test.each(['', 'ab', '"', '\n'])('%j is no delimiter', (delimiter) => {
  expect(allows(parseCsv.parameters, { text: 'a', delimiter })).toBe(false);
});
