import { describe, expect, test } from 'vitest';
import { compileSchema } from '../../../kernel/json-schema.ts';
import { cleanText } from '../../../kernel/text.ts';
import { cleanJson } from '../active-run.ts';
import { outputBytesMax } from '../limits.ts';
import { describeFailure } from './failure.ts';
import { readOutput } from './output.ts';

const anything = compileSchema({});

/** The output's text, or the code and message of the failure. */
function read(value: unknown, validate = anything): string {
  const output = readOutput(value, validate);
  return 'json' in output ? output.json : `${output.failure.code}: ${output.failure.message}`;
}

describe('an output', () => {
  test.each([
    [null, 'null'],
    [{ a: [1, 'x', true], b: undefined, c: () => 1 }, '{"a":[1,"x",true]}'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [new Map([[1, 2]]), '{}'],
    [JSON.parse('{"__proto__":1}'), '{"__proto__":1}'],
  ])('%j is taken', (value, json) => {
    expect(read(value)).toBe(json);
  });

  test.each([
    [Number.NaN, 'the output holds NaN, which'],
    [{ mean: { of: [1, 0 / 0] } }, 'the output holds NaN at mean.of.1, which'],
    [{ ratio: 1 / 0 }, 'the output holds Infinity at ratio, which'],
  ])(
    'that holds a number which JSON would write as null is refused with its place: %j',
    (value, text) => {
      expect(read(value)).toContain(`output_invalid: ${text} JSON cannot carry`);
    },
  );

  test('is validated as serialized, not as returned', () => {
    const wantsText = compileSchema({ properties: { at: { type: 'string' } } });
    expect(read({ at: new Date(0) }, wantsText)).toMatch(/1970/);
    expect(read({ at: 5 }, wantsText)).toBe(
      "output_invalid: the output breaks the skill's schema: at must be string",
    );
  });

  test('of exactly 1 MiB is accepted, and of one byte more is refused', () => {
    expect(read('x'.repeat(outputBytesMax - 2))).toHaveLength(outputBytesMax);
    const tooLarge = 'skill_execution_failed: the output is larger than 1024 KiB of JSON';
    expect(read('x'.repeat(outputBytesMax - 1))).toBe(tooLarge);
    expect(read('é'.repeat(outputBytesMax / 2))).toBe(tooLarge);
    expect(read('"'.repeat(outputBytesMax / 2))).toBe(tooLarge);
  });

  test('whose shared parts would become huge is refused before it is serialized', () => {
    let tree: unknown = [];
    for (let i = 0; i < 60; i++) tree = [tree, tree];
    expect(read(tree)).toMatch(/larger than/);
  });
});

describe('a failure', () => {
  test.each<[unknown, string]>([
    [new Error('broken'), 'broken'],
    ['words', 'words'],
    [undefined, 'the skill threw undefined'],
    ['', 'the skill threw an empty string'],
    [Symbol('s'), 'the skill threw Symbol(s)'],
    [{ message: 'like an error' }, 'like an error'],
    [{}, 'the skill threw an object without a message'],
    [new Error('fetch failed', { cause: new Error('ECONNREFUSED') }), 'fetch failed: ECONNREFUSED'],
    [new Error('a: b', { cause: new Error('b') }), 'a: b'],
    [new AggregateError([new Error('first'), new Error('second')]), 'first'],
    [Object.assign(new Error(''), { code: 'ENOENT' }), 'ENOENT'],
    [new Proxy({}, { get: () => expect.fail() }), 'the skill threw something that cannot be read'],
  ])('%#: says what was thrown', (thrown, message) => {
    expect(describeFailure(thrown).message).toBe(message);
  });

  test('keeps the codes that skills may use, and no others', () => {
    const codeOf = (code: string) => describeFailure(Object.assign(new Error('x'), { code })).code;
    expect(codeOf('missing_credentials')).toBe('missing_credentials');
    expect(codeOf('upstream_unavailable')).toBe('upstream_unavailable');
    expect(codeOf('worker_lost')).toBe('skill_execution_failed');
    expect(codeOf('output_invalid')).toBe('skill_execution_failed');
  });

  test('is retried unless it says retryable: false', () => {
    expect(describeFailure(new Error('x')).retryable).toBe(true);
    expect(describeFailure({ retryable: 0 }).retryable).toBe(true);
    expect(describeFailure({ retryable: false }).retryable).toBe(false);
  });

  test('has a message of at most 4,096 characters', () => {
    expect(describeFailure(new Error('x'.repeat(1e6))).message).toHaveLength(4_096);
  });
});

describe('texts for the databases', () => {
  test('NUL and halves of surrogate pairs are replaced', () => {
    expect(cleanText('a\0\ud83db😀')).toBe('a\ufffd\ufffdb😀');
    expect(JSON.parse(cleanJson(JSON.stringify('a\0\ud83d\udca9\ud83db')))).toBe(
      'a\ufffd💩\ufffdb',
    );
  });

  test('an escaped backslash before the letters is plain text', () => {
    const json = JSON.stringify('\\u0000 \\\\u0000 \\');
    expect(cleanJson(json)).toBe(json);
    expect(JSON.parse(cleanJson(JSON.stringify('\\\0')))).toBe('\\\ufffd');
  });
});
