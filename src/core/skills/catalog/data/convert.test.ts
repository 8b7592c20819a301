import { describe, expect, test } from 'vitest';
import { trySkill } from '../../../../../test/support/try-skill.ts';
import convertSkill, { convert } from './convert.ts';

type Format = 'json' | 'yaml' | 'csv';

/** What happens in the sandbox, without the sandbox. */
const run = async (from: Format, to: Format, text: string, more = {}) =>
  (await convert({ from, to, text, ...more })).text;

/** The whole skill. */
const runSkill = (from: Format, to: Format, text: string) =>
  trySkill(convertSkill, { from, to, text });

test.each<[Format, Format, string, string]>([
  ['json', 'json', ' {"a" : [1, null]} ', '{"a":[1,null]}'],
  ['json', 'csv', '[{"a":1,"b":true},{"c":"x,y","a":null}]', 'a,b,c\n1,true,\n,,"x,y"\n'],
  ['json', 'csv', '[["a","b"],[1,{"x":1}]]', 'a,b\n1,"{""x"":1}"\n'],
  ['json', 'csv', '["x",2]', 'value\nx\n2\n'],
  ['json', 'csv', '{"a":1}', 'a\n1\n'],
  ['json', 'csv', '[]', ''],
  [
    'yaml',
    'json',
    'a: 1\nb: [x, "y"]\nc: ~\nd: 2026-01-31\n',
    '{"a":1,"b":["x","y"],"c":null,"d":"2026-01-31"}',
  ],
  ['yaml', 'json', 'a: &x {n: 1}\nb: *x\n', '{"a":{"n":1},"b":{"n":1}}'],
  ['yaml', 'json', '', 'null'],
  ['yaml', 'json', 'no: no\nyes: yes\n', '{"no":"no","yes":"yes"}'],
  ['csv', 'json', 'a;b\n1;x\n', '[{"a":"1","b":"x"}]'],
  ['csv', 'yaml', 'a,b\n1,x\n', '- a: "1"\n  b: x\n'],
  ['csv', 'csv', 'a;b\n1;"x,y"\n', 'a,b\n1,"x,y"\n'],
])('%s to %s: %j becomes %j', async (from, to, text, expected) => {
  expect(await run(from, to, text, to === 'json' ? { indent: 0 } : {})).toBe(expected);
});

test('indentation and types are as asked for', async () => {
  expect(await run('json', 'json', '{"a":1}')).toBe('{\n  "a": 1\n}');
  expect(await run('json', 'yaml', '{"a":{"b":1}}', { indent: 4 })).toBe('a:\n    b: 1\n');
  expect(await run('json', 'yaml', '{"a":{"b":1}}', { indent: 0 })).toBe('a:\n b: 1\n');
  expect(await run('csv', 'json', 'a\n1\n', { indent: 0, infer_types: true })).toBe('[{"a":1}]');
});

describe('a text that does not parse says where', () => {
  test.each<[Format, string, string]>([
    ['json', '{"a":\n  oops}', 'JSON: '],
    ['json', '', 'JSON: Unexpected end'],
    ['yaml', 'a: [1\nb: 2', 'line '],
    ['yaml', 'a: 1\na: 2', 'YAML: Map keys must be unique at line 2, column 1'],
    ['yaml', 'a: 1\n---\nb: 2', 'multiple documents'],
    ['csv', 'a,b\n1,2,3\n', 'CSV: line 2'],
  ])('%s: %j', async (from, text, message) => {
    await expect(run(from, 'json', text)).rejects.toThrow(message);
  });
});

describe('what the other format cannot hold is an error, not something else', () => {
  test.each<[Format, Format, string, string]>([
    ['yaml', 'json', 'a: .inf', 'JSON cannot hold Infinity'],
    ['yaml', 'json', 'a: .nan', 'JSON cannot hold NaN'],
    ['json', 'csv', '[{"a":1},2]', 'Only a list'],
    ['json', 'csv', '[[1],{"a":1}]', 'Only a list'],
    ['json', 'csv', '[{"a":"x\\u0000y"}]', 'NUL'],
  ])('%s to %s: %j', async (from, to, text, message) => {
    await expect(run(from, to, text)).rejects.toThrow(message);
  });
});

describe('a bomb does not go off', () => {
  const level = (name: string, inner: string) => `${name}: &${name} [${Array(9).fill(inner)}]`;
  const laughs = ['a: &a [lol]'];
  for (const [i, name] of [...'bcdefghijk'].entries()) {
    laughs.push(level(name, `*${'abcdefghij'[i]}`));
  }

  test('of aliases', async () => {
    await expect(runSkill('yaml', 'json', laughs.join('\n'))).rejects.toMatchObject({
      message: expect.stringContaining('alias count'),
      retryable: false,
    });
  });

  test.each<[Format, string]>([
    ['yaml', '['.repeat(100_000)],
    ['yaml', 'a: '.repeat(10_000)],
    ['yaml', '- '.repeat(50_000)],
    ['json', '['.repeat(200_000)],
  ])('of nesting in %s', async (from, text) => {
    await expect(runSkill(from, 'yaml', text)).rejects.toMatchObject({
      message: expect.stringMatching(/nested too deeply|YAML|JSON/),
      retryable: false,
    });
  });

  test('of size', async () => {
    const anchored = `a: &a ${'x'.repeat(20_000)}\nb: [${Array(90).fill('*a').join(',')}]`;

    await expect(run('yaml', 'json', anchored)).rejects.toThrow('longer than 900000 bytes');
  });
});

test('names from outside do not reach the prototype', async () => {
  const text = await run('yaml', 'json', '__proto__: {polluted: 1}\na: 1\n', { indent: 0 });

  expect(text).toBe('{"__proto__":{"polluted":1},"a":1}');
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});
