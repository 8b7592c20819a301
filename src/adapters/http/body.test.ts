import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { bodyBytesMax, parseJsonBody } from './body.ts';

const parse = (text: string | readonly number[]) => parseJsonBody(Buffer.from(text as string));
const refusal = expect.objectContaining({ code: 'validation_error' });

describe('a body', () => {
  test('may be 1 MiB', () => {
    expect(bodyBytesMax).toBe(1_048_576);
  });

  test('that is absent is undefined: only the route knows whether it needs one', () => {
    expect(parse('')).toBeUndefined();
  });

  test.each<[string, unknown]>([
    ['{}', {}],
    [' \r\n\t{"a":[1,"é",null,true]} ', { a: [1, 'é', null, true] }],
    ['null', null],
    ['[]', []],
    ['"x"', 'x'],
    ['1', 1],
    ['"\\ud83d\\ude00 😀"', '😀 😀'],
    ['{"constructor":1,"prototype":2,"toString":3}', { constructor: 1, prototype: 2, toString: 3 }],
    ['{"a":"__proto__"}', { a: '__proto__' }],
  ])('of %j is that JSON value', (text, value) => {
    expect(parse(text)).toEqual(value);
  });

  test('of any clean JSON value is that value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'grapheme' }), (value) => {
        const text = JSON.stringify(value);
        fc.pre(!text.includes('__proto__') && !text.includes('\\u0000'));

        expect(parse(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test.each([
    ' ',
    '{',
    '{"a":1',
    '{"a":1}}',
    "{'a':1}",
    '{"a":01}',
    '{"a":+1}',
    '{"a":.5}',
    '{"a":NaN}',
    '{"a":Infinity}',
    '{"a":undefined}',
    '[1,]',
    '// comment\n{}',
    'undefined',
    '{"a":"\n"}',
    '\0',
    '{"a":"\0"}',
    '['.repeat(100_000),
    '{"a":'.repeat(100_000),
  ])('of malformed JSON is refused: %.20j', (text) => {
    expect(() => parse(text)).toThrow(refusal);
  });

  test.each([
    '{"a":1e999}',
    '[-1e999]',
    '"\\u0000"',
    '{"a\\u0000":1}',
    '"\\ud83d"',
    `${'['.repeat(65)}${']'.repeat(65)}`,
    `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
  ])('that no store could keep is refused: %.20j', (text) => {
    expect(() => parse(text)).toThrow(refusal);
  });

  test.each([
    ['a lone continuation byte', [0x22, 0x80, 0x22]],
    ['an overlong slash', [0x22, 0xc0, 0xaf, 0x22]],
    ['an overlong NUL', [0x22, 0xc0, 0x80, 0x22]],
    ['an encoded surrogate', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['a code point above U+10FFFF', [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22]],
    ['a cut sequence', [0x22, 0xf0, 0x9f, 0x98, 0x22]],
    ['Latin-1', [0x22, 0xe9, 0x22]],
    ['UTF-16', [0x22, 0x00, 0x61, 0x00, 0x22, 0x00]],
    ['a byte order mark', [0xef, 0xbb, 0xbf, 0x7b, 0x7d]],
  ])('in %s is refused', (_, bytes) => {
    expect(() => parse(bytes)).toThrow(refusal);
  });

  test.each([
    '{"__proto__":{"x":1}}',
    '{"\\u005f_proto__":{"x":1}}',
    '{"\\u005f\\u005fproto\\u005f\\u005f":{"x":1}}',
    '{"a":[{"b":{"__proto__":{"x":1}}}]}',
    '{"constructor":{"prototype":{"x":1}}}',
    '{"a":{"constructor":{"prototype":{"x":1}}}}',
    '{"c\\u006fnstructor":{"prot\\u006ftype":{"x":1}}}',
  ])('that aims at a prototype is refused and changes nothing: %s', (text) => {
    expect(() => parse(text)).toThrow(refusal);
    expect(({} as { x?: number }).x).toBeUndefined();
  });

  test('is refused with words that say nothing of the inside', () => {
    expect(() => parse('{"secret":hunter2')).toThrow(/^body is not valid JSON$/);
  });
});
