import { describe, expect, test } from 'vitest';
import { writeValue } from './step-values.ts';

const write = (value: unknown) => writeValue(value, 'the step "a" returned');

class Account {
  readonly id = 7;
  balance(): number {
    return this.id;
  }
}

describe('a value is carried through JSON', () => {
  const shared = { a: 1 };
  test.each<[string, unknown, string | undefined]>([
    ['nothing', undefined, undefined],
    ['null', null, 'null'],
    ['a text', 'a\0"', '"a\\u0000\\""'],
    ['members that are undefined', { a: undefined, b: 1 }, '{"b":1}'],
    ['a list with undefined', [undefined], '[null]'],
    ['a Date', { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ['a URL', new URL('http://a.test'), '"http://a.test/"'],
    ['a Buffer', Buffer.from('a'), '{"type":"Buffer","data":[97]}'],
    ['an object of a class', new Account(), '{"id":7}'],
    ['the same object twice', [shared, shared], '[{"a":1},{"a":1}]'],
  ])('%s', (_, value, json) => {
    expect(write(value)).toBe(json);
  });
});

describe('a value that JSON cannot carry is refused', () => {
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  const nested = (levels: number): unknown => (levels === 0 ? 1 : [nested(levels - 1)]);
  test.each<[string, unknown, string]>([
    ['a function', () => 1, 'a function, which JSON cannot carry'],
    ['a function inside', { a: [{ b() {} }] }, 'a function, which JSON cannot carry'],
    ['a symbol', Symbol('a'), 'a symbol, which JSON cannot carry'],
    ['a BigInt', { a: 1n }, 'a bigint, which JSON cannot carry'],
    ['NaN', { a: Number.NaN }, 'the number NaN, which JSON cannot carry'],
    ['a Map', { a: new Map() }, 'a Map, which JSON cannot carry'],
    ['a Set', new Set([1]), 'a Set, which JSON cannot carry'],
    ['an Error', [new Error('no')], 'an Error, which JSON cannot carry'],
    ['a promise', { a: Promise.resolve() }, 'a promise that is not awaited'],
    ['bytes', new Uint8Array(3), 'an array of bytes'],
    ['a circle', circle, 'circular or nested deeper than 64 levels'],
    ['deep nesting', nested(65), 'circular or nested deeper than 64 levels'],
    ['deep nesting by toJSON', { toJSON: () => nested(65) }, 'nested deeper than 64 levels'],
    ['a BigInt by toJSON', { toJSON: () => 1n }, 'what JSON cannot carry: Do not know how'],
    [
      'a getter that throws',
      {
        get a() {
          throw new Error('locked');
        },
      },
      'what JSON cannot carry: locked',
    ],
    ['2 MiB', 'x'.repeat(2 ** 21), 'more than 1024 KiB of JSON'],
    ['1 MiB of three bytes each', '€'.repeat(2 ** 19), 'more than 1024 KiB of JSON'],
    ['a list of a million', new Array(2_000_000).fill(0), 'more than 1024 KiB of JSON'],
  ])('%s', (_, value, fault) => {
    let thrown: unknown;
    try {
      write(value);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toMatchObject({ retryable: false });
    expect((thrown as Error).message).toMatch(/^the step "a" returned /);
    expect((thrown as Error).message).toContain(fault);
  });

  test('1 MiB of JSON exactly is not', () => {
    expect(write('x'.repeat(2 ** 20 - 2))?.length).toBe(2 ** 20);
  });
});
