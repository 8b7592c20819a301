import fc from 'fast-check';
import { type TObject, Type } from 'typebox';
import { describe, expect, test } from 'vitest';
import type { PlatformError } from '../../kernel/errors.ts';
import { type Query, queryReader } from './query.ts';
import { FilterText, Id, Limit, Moment, Offset, Page, Slug, Words } from './schemas.ts';

/** What a route with this schema reads. */
function read(schema: TObject, query: Query): Record<string, unknown> {
  const result = queryReader(schema)(query);
  if ('error' in result) throw result.error;
  return result.value;
}

/** The field that the refusal of a query names; undefined when there was none. */
function refusedField(schema: TObject, query: Query): string | undefined {
  const result = queryReader(schema)(query);
  if (!('error' in result)) return undefined;
  const { code, extras } = result.error as PlatformError;
  expect(code).toBe('validation_error');
  return extras.details?.[0]?.field;
}

const Messages = Type.Object({ limit: Limit({ default: 100, maximum: 500 }), offset: Offset });
const Tag = Type.Object({ tag: Type.Optional(FilterText('A text.')) });
const Status = Type.Object({ status: Type.Optional(Words(['active', 'completed'])) });

test.each([
  ['tag', Tag],
  ['status', Status],
  ['limit', Page],
] as const)('%s[] is not %s left out', (name, schema) => {
  expect(refusedField(schema, { [`${name}[]`]: 'x' })).toBe(name);
});

test('a schema that no query can be read by is refused', () => {
  expect(() => queryReader(Type.Object({ tags: Type.Array(Type.String()) }))).toThrow('tags');
});

test.each([
  ['exclusiveMinimum', Type.Integer({ minimum: 0, maximum: 9, exclusiveMinimum: 0 })],
  ['multipleOf', Type.Integer({ minimum: 0, maximum: 9, multipleOf: 2 })],
  ['minimum', Type.String({ maxLength: 9, minimum: 1 })],
  ['const', Type.Literal('all')],
  ['pattern', Type.Integer({ minimum: 0, maximum: 9, pattern: '^1' })],
  ['format email', Type.String({ maxLength: 9, format: 'email' })],
])('a schema with a keyword that is not read is refused: %s', (keyword, schema) => {
  const register = () => queryReader(Type.Object({ tag: schema }));

  expect(register).toThrow(TypeError);
  expect(register).toThrow(`tag: ${keyword}`);
});

test.each([
  ['a text', 'maxLength', Type.String()],
  ['a text with a pattern', 'maxLength', Type.String({ pattern: '^a+$' })],
  ['an integer', 'a maximum', Type.Integer({ minimum: 0 })],
  ['an integer', 'a minimum', Type.Integer({ maximum: 9 })],
  ['an integer below 0', 'a minimum', Type.Integer({ minimum: -1, maximum: 9 })],
  ['an integer of 11 digits', 'a maximum', Type.Integer({ minimum: 0, maximum: 1e10 })],
])('a schema of %s without its bounds is refused: %s', (_text, bound, schema) => {
  const register = () => queryReader(Type.Object({ tag: schema }));

  expect(register).toThrow(TypeError);
  expect(register).toThrow(bound);
});

test('a required parameter is refused and named where it is absent', () => {
  const schema = Type.Object({ cron_expression: FilterText('A text.') });

  expect(refusedField(schema, {})).toBe('cron_expression');
  expect(read(schema, { cron_expression: '' })).toEqual({ cron_expression: '' });
});

test('parameters that the schema does not have are left out', () => {
  expect(read(Tag, { tag: 'a', other: 'b' })).toEqual({ tag: 'a' });
});

describe('a page', () => {
  test('has its default limit and begins at the start', () => {
    expect(read(Page, {})).toEqual({ limit: 50, offset: 0 });
    expect(read(Messages, {})).toEqual({ limit: 100, offset: 0 });
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
    expect(read(Page, query)).toEqual(page);
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
      expect(refusedField(Page, { limit })).toBe('limit');
    },
  );

  test.each([...malformed, '2147483648', '9007199254740992', ['0', '0']])(
    'an offset of %j is refused and named',
    (offset) => {
      expect(refusedField(Page, { offset })).toBe('offset');
    },
  );

  test('of messages goes up to 500', () => {
    expect(read(Messages, { limit: '500' })['limit']).toBe(500);
    expect(refusedField(Messages, { limit: '501' })).toBe('limit');
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

        expect(refusedField(Page, { limit }) === undefined).toBe(isPlain);
      }),
    );
  });
});

describe('a text parameter', () => {
  test('is its text, or undefined when it is absent', () => {
    expect(read(Tag, {})['tag']).toBeUndefined();
    for (const tag of ['', 'a b\r\n👩‍👩‍👧 مرحبا']) expect(read(Tag, { tag })).toEqual({ tag });
  });

  test.each([['a\0b'], ['\ud83d'], [['a', 'b']], [['a']], [{ $ne: '' }], [5], [null]])(
    '%j is refused and named',
    (tag) => {
      expect(refusedField(Tag, { tag })).toBe('tag');
    },
  );

  test('is at most as long as it may be', () => {
    expect(read(Tag, { tag: '😀'.repeat(200) })['tag']).toHaveLength(400);
    for (const schema of [Tag, Type.Object({ tag: Id })]) {
      expect(refusedField(schema, { tag: 'x'.repeat(201) })).toBe('tag');
    }
    expect(refusedField(Type.Object({ tag: Type.String({ maxLength: 1 }) }), { tag: 'xx' })).toBe(
      'tag',
    );
  });
});

test('a text is at least as long as it must be', () => {
  const schema = Type.Object({ tag: Type.String({ minLength: 2, maxLength: 9 }) });

  expect(read(schema, { tag: '😀😀' })).toEqual({ tag: '😀😀' });
  for (const tag of ['', 'x', '😀']) expect(refusedField(schema, { tag })).toBe('tag');
});

test('a text matches its pattern', () => {
  const schema = Type.Object({ tag: Type.String({ pattern: '^v\\d+$', maxLength: 9 }) });

  expect(read(schema, { tag: 'v12' })).toEqual({ tag: 'v12' });
  for (const tag of ['', 'v', 'V1', 'v1\n', 'xv1'])
    expect(refusedField(schema, { tag })).toBe('tag');
});

describe('a word parameter', () => {
  test('is one of its words, or undefined when it is absent', () => {
    expect(read(Status, {})['status']).toBeUndefined();
    expect(read(Status, { status: 'active' })).toEqual({ status: 'active' });
  });

  test.each([
    ['Active'],
    [''],
    ['done'],
    [' active'],
    ['active,completed'],
    [['active', 'active']],
  ])('%j is refused and named', (status) => {
    expect(refusedField(Status, { status })).toBe('status');
  });
});

test('a timestamp is read as milliseconds', () => {
  const schema = Type.Object({ after: Type.Optional(Moment('After that.')) });

  expect(read(schema, { after: '2026-11-21T10:00:00+01:00' })['after']).toBe(
    Date.UTC(2026, 10, 21, 9),
  );
  expect(refusedField(schema, { after: '2026-11-21' })).toBe('after');
});

test('an organization is a slug', () => {
  const schema = Type.Object({ organization_id: Type.Optional(Slug) });

  expect(read(schema, { organization_id: 'acme' })).toEqual({ organization_id: 'acme' });
  expect(refusedField(schema, { organization_id: 'Acme!' })).toBe('organization_id');
});

describe('a day', () => {
  const schema = Type.Object({ from: Type.Optional(Type.String({ format: 'date' })) });

  test.each(['2026-11-21', '2024-02-29', '1000-01-01', '9999-12-31'])('is read: %s', (from) => {
    expect(read(schema, { from })).toEqual({ from });
  });

  test.each([
    '',
    '2026-11-31',
    '2025-02-29',
    '2026-13-01',
    '2026-00-10',
    '2026-1-1',
    '0026-01-01',
    '+002026-01-01',
    '2026-11-21T00:00:00Z',
    '20261121',
    ' 2026-11-21',
    'today',
    '2026-11-2١',
  ])('%j is not a day, and is refused', (from) => {
    expect(refusedField(schema, { from })).toBe('from');
  });
});
