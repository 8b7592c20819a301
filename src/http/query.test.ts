import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PlatformError } from '../kernel/errors.ts';
import { pageParameters, textParameter, wordParameter } from './query.ts';

/** The field that a refusal names; undefined when there was none. */
function refusedField(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    const { code, extras } = error as PlatformError;
    expect(code).toBe('validation_error');
    return extras.details?.[0]?.field;
  }
}

test.each(['tag', 'status', 'limit'])('%s[] is not %s left out', (name) => {
  const query = { [`${name}[]`]: 'x' };

  expect(refusedField(() => textParameter(query, name))).toBe(name);
  expect(refusedField(() => wordParameter(query, name, ['x']))).toBe(name);
});

describe('a page', () => {
  test('has its default limit and begins at the start', () => {
    expect(pageParameters({})).toEqual({ limit: 50, offset: 0 });
    expect(pageParameters({}, { default: 100, max: 500 })).toEqual({ limit: 100, offset: 0 });
  });

  test.each([
    [{ limit: '1' }, { limit: 1, offset: 0 }],
    [{ limit: '200' }, { limit: 200, offset: 0 }],
    [{ offset: '0' }, { limit: 50, offset: 0 }],
    [
      { limit: '7', offset: '2147483647' },
      { limit: 7, offset: 2_147_483_647 },
    ],
  ])('%j is taken as it is', (query, page) => {
    expect(pageParameters(query)).toEqual(page);
  });

  const malformed = [
    '',
    ' ',
    '-1',
    '+5',
    '01',
    '00',
    '1e2',
    '0x10',
    '10.5',
    '10.0',
    '1_0',
    '٣',
    '5 ',
  ]
    .concat(['Infinity', 'NaN', '1e999', '99999999999999999999', '5\n', '1,2', 'null', 'ten'])
    .map((text) => text as unknown);

  test.each([...malformed, '0', '201', '501', ['1', '2'], ['5'], {}])(
    'a limit of %j is refused and named',
    (limit) => {
      expect(refusedField(() => pageParameters({ limit }))).toBe('limit');
    },
  );

  test.each([...malformed, '2147483648', '9007199254740992', ['0', '0']])(
    'an offset of %j is refused and named',
    (offset) => {
      expect(refusedField(() => pageParameters({ offset }))).toBe('offset');
    },
  );

  test('of messages goes up to 500', () => {
    const limits = { default: 100, max: 500 };

    expect(pageParameters({ limit: '500' }, limits).limit).toBe(500);
    expect(refusedField(() => pageParameters({ limit: '501' }, limits))).toBe('limit');
  });

  test('is taken exactly when its limit is a plain decimal within the bounds', () => {
    const limits = fc.oneof(
      fc.string(),
      fc.integer({ min: -10, max: 300 }).map(String),
      fc.stringMatching(/^[-+0-9.e ]{1,6}$/),
    );
    fc.assert(
      fc.property(limits, (limit) => {
        const fits = String(Number(limit)) === limit && Number(limit) >= 1 && Number(limit) <= 200;
        const isPlain = fits && Number.isInteger(Number(limit));

        expect(refusedField(() => pageParameters({ limit })) === undefined).toBe(isPlain);
      }),
    );
  });
});

describe('a text parameter', () => {
  test('is its text, or undefined when it is absent', () => {
    expect(textParameter({}, 'tag')).toBeUndefined();
    expect(textParameter({ tag: '' }, 'tag')).toBe('');
    expect(textParameter({ tag: 'a b\r\n👩‍👩‍👧 مرحبا' }, 'tag')).toBe('a b\r\n👩‍👩‍👧 مرحبا');
  });

  test.each([['a\0b'], ['\ud83d'], [['a', 'b']], [['a']], [{ $ne: '' }], [5], [null]])(
    '%j is refused and named',
    (tag) => {
      expect(refusedField(() => textParameter({ tag }, 'tag'))).toBe('tag');
    },
  );

  test('is at most as long as it may be', () => {
    expect(textParameter({ tag: 'x'.repeat(200) }, 'tag')).toHaveLength(200);
    expect(refusedField(() => textParameter({ tag: 'x'.repeat(201) }, 'tag'))).toBe('tag');
    expect(refusedField(() => textParameter({ tag: 'xx' }, 'tag', 1))).toBe('tag');
  });
});

describe('a word parameter', () => {
  const words = ['active', 'completed'] as const;

  test('is one of its words, or undefined when it is absent', () => {
    expect(wordParameter({}, 'status', words)).toBeUndefined();
    expect(wordParameter({ status: 'active' }, 'status', words)).toBe('active');
  });

  test.each([
    ['Active'],
    [''],
    ['done'],
    [' active'],
    ['active,completed'],
    [['active', 'active']],
  ])('%j is refused and named', (status) => {
    expect(refusedField(() => wordParameter({ status }, 'status', words))).toBe('status');
  });
});
