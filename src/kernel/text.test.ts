import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson, isCleanText, jsonTextFault, nestingMax } from './text.ts';

/** Any UTF-16, lone surrogates and NUL among it. */
const anyText = fc.string({
  unit: fc.integer({ min: 0, max: 0xffff }).map((c) => String.fromCharCode(c)),
});
const cleanText = fc.string({ unit: 'grapheme' }).filter(isCleanText);

const nested = (depth: number, open = '[', close = ']') => open.repeat(depth) + close.repeat(depth);

function depthOf(value: unknown): number {
  if (value === null || typeof value !== 'object') return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe('a string', () => {
  test.each(['', 'word', 'a\r\nb', '👩‍👩‍👧', 'مرحبا', '\u0001', '\uffff'])(
    '%j is clean',
    (text) => {
      expect(isCleanText(text)).toBe(true);
    },
  );

  test.each(['\0', 'a\0b', '\ud83d', '\ude00', '\ude00\ud83d', 'x\ud800y'])('%j is not', (text) => {
    expect(isCleanText(text)).toBe(false);
  });
});

describe('a JSON text', () => {
  test('may nest 64 levels and no more', () => {
    expect(nestingMax).toBe(64);
    expect(jsonTextFault(nested(64))).toBeNull();
    expect(jsonTextFault(nested(65))).toBe('is nested deeper than 64 levels');
    expect(jsonTextFault(`${'{"a":'.repeat(64)}1${'}'.repeat(64)}`)).toBeNull();
    expect(jsonTextFault(`${'{"a":'.repeat(65)}1${'}'.repeat(65)}`)).not.toBeNull();
    expect(jsonTextFault(`${'[{"a":'.repeat(33)}1${'}]'.repeat(33)}`)).not.toBeNull();
  });

  test('is judged in linear time, a hundred thousand levels deep too', () => {
    expect(jsonTextFault(nested(100_000))).not.toBeNull();
    expect(jsonTextFault(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`)).not.toBeNull();
  });

  test.each([
    ['brackets in strings', JSON.stringify('['.repeat(100))],
    ['brackets in keys', JSON.stringify({ ['{['.repeat(100)]: 1 })],
    ['brackets after an escaped quote', JSON.stringify(`"${'['.repeat(100)}`)],
    ['brackets after an escaped backslash', `["\\\\",${'[1],'.repeat(100)}1]`],
    ['siblings', `[${'[1],'.repeat(1_000)}1]`],
  ])('%s are no nesting', (_, text) => {
    JSON.parse(text);

    expect(jsonTextFault(text)).toBeNull();
  });

  test('is nested as deep as its value is', () => {
    const values = fc.jsonValue({ maxDepth: 12 });
    fc.assert(
      fc.property(values, fc.integer({ min: 50, max: 70 }), (value, levels) => {
        const text = '[{"k":'.repeat(levels / 2) + JSON.stringify(value) + '}]'.repeat(levels / 2);
        const tooDeep = depthOf(JSON.parse(text)) > 64;

        expect(jsonTextFault(text) === 'is nested deeper than 64 levels').toBe(tooDeep);
      }),
    );
  });

  test.each([
    ['a NUL', '"\\u0000"'],
    ['a NUL in a key', '{"a\\u0000":1}'],
    ['a NUL deep inside', '[1,{"a":["x","\\u0000"]}]'],
    ['half a pair', '"\\ud83d"'],
    ['the other half', '["\\uDE00"]'],
    ['halves in the wrong order', '"\\ude00\\ud83d"'],
    ['half a pair in a key', '{"\\ud83d":1}'],
  ])('with %s is refused', (_, text) => {
    expect(jsonTextFault(text)).toBe('contains a NUL character or a lone surrogate');
  });

  test.each(['"\\ud83d\\ude00"', '"\\u00e9"', '"\\\\u0000"', '"\\\\\\\\ud800"', '"\\"\\\\u0000"'])(
    '%s is clean',
    (text) => {
      expect(jsonTextFault(text)).toBeNull();
    },
  );

  test('is refused exactly when a string or a key in it is not clean', () => {
    fc.assert(
      fc.property(anyText, cleanText, anyText, (key, middle, value) => {
        const text = JSON.stringify({ [`k${key}`]: [middle, { v: value }] });

        expect(jsonTextFault(text) === null).toBe(isCleanText(key) && isCleanText(value));
      }),
    );
  });

  test.each([
    '1e999',
    '-1e999',
    '[1E+400]',
    '{"a":[1,{"b":1.5e309}]}',
    `1${'0'.repeat(400)}`,
    `[-${'9'.repeat(310)}.5]`,
    `${'1'.repeat(250)}e99`,
  ])('with a number that is not finite is refused: %.30s', (text) => {
    expect(jsonTextFault(text)).toBe('contains a number that is too large');
  });

  test.each([
    '1e308',
    '-1.7e308',
    '1e-999',
    '0e999',
    '"1e999"',
    '{"1e999":"9e999"}',
    `0.${'1'.repeat(400)}`,
  ])('with numbers that are finite is taken: %.30s', (text) => {
    expect(jsonTextFault(text)).toBeNull();
  });

  test('is refused for its numbers exactly when one of them is not finite', () => {
    const digits = fc.stringMatching(/^[1-9]\d{0,320}$/);
    const exponents = fc.stringMatching(/^([eE][+-]?\d{1,3})?$/);
    fc.assert(
      fc.property(digits, exponents, fc.jsonValue(), (mantissa, exponent, other) => {
        const text = `[${JSON.stringify(other)},{"n":${mantissa}${exponent}}]`;
        if (!isCleanJson(other)) return;

        expect(jsonTextFault(text) === null).toBe(Number.isFinite(Number(mantissa + exponent)));
      }),
    );
  });
});

describe('canonical JSON', () => {
  test('sorts keys at every level and keeps the order of items', () => {
    expect(canonicalJson({ b: [2, { d: 1, c: 2 }], a: 'x', '10': 0, '9': 0 })).toBe(
      '{"10":0,"9":0,"a":"x","b":[2,{"c":2,"d":1}]}',
    );
  });

  test('means the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const plain = JSON.parse(JSON.stringify(value));

        expect(JSON.parse(canonicalJson(plain))).toEqual(plain);
      }),
    );
  });

  test('is equal for values that differ in the order of their keys only', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.infiniteStream(fc.nat()), (value, chances) => {
        expect(canonicalJson(reordered(value, chances))).toBe(canonicalJson(value));
      }),
    );
  });

  test('differs for values that differ', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        const plain = [a, b].map((value) => JSON.parse(JSON.stringify(value)));
        const isEqual = isSame(plain[0], plain[1]);

        expect(canonicalJson(plain[0]) === canonicalJson(plain[1])).toBe(isEqual);
      }),
    );
    expect(canonicalJson([1, [2]])).not.toBe(canonicalJson([[1], 2]));
    expect(canonicalJson({ a: '1' })).not.toBe(canonicalJson({ a: 1 }));
    expect(canonicalJson({ 'a":1,"b': 2 })).not.toBe(canonicalJson({ a: 1, b: 2 }));
    expect(canonicalJson(null)).not.toBe(canonicalJson('null'));
  });
});

function isCleanJson(value: unknown): boolean {
  return jsonTextFault(JSON.stringify(value)) === null;
}

function reordered(value: unknown, chances: Iterator<number>): unknown {
  if (Array.isArray(value)) return value.map((item) => reordered(item, chances));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, item]) => ({ at: chances.next().value, entry: [key, reordered(item, chances)] }))
      .sort((a, b) => a.at - b.at)
      .map(({ entry }) => entry),
  );
}

function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((k) => Object.hasOwn(b, k) && isSame(a[k as never], b[k as never]))
  );
}
