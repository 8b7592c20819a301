import { describe, expect, test } from 'vitest';
import { cpuMsOf } from '../../test/support/cpu-time.ts';
import { growthOf, linearGrowthMax } from '../../test/support/growth.ts';
import { patient } from '../../test/support/wait-for.ts';
import { checkSchema, compileSchema } from './json-schema.ts';
import { schemaBytesMax, schemaDepthMax } from './schema-rules.ts';

/** Fields and words of what is wrong with a value. */
function issuesOf(schema: object, value: unknown): string[] {
  const issues = compileSchema(schema as Record<string, unknown>)(value) ?? [];
  return issues.map(({ field, issue }) => `${field}: ${issue}`);
}

function faultOf(schema: unknown): string {
  try {
    checkSchema(schema as Record<string, unknown>);
  } catch (error) {
    return (error as Error).message;
  }
  return 'none';
}

describe('compileSchema', () => {
  const person = {
    type: 'object',
    required: ['name'],
    additionalProperties: false,
    properties: {
      name: { type: 'string', minLength: 1, pattern: '^[a-z]+$' },
      age: { type: 'integer', minimum: 0 },
      mail: { format: 'email' },
      role: { enum: ['admin', 'user'] },
      pets: { type: 'array', items: { type: ['string', 'null'] } },
    },
  };

  test('an allowed value has no issues', () => {
    const value = { name: 'ann', age: 3, mail: 'a@b.example', role: 'user', pets: ['rex', null] };
    expect(compileSchema(person)(value)).toBeNull();
  });

  test.each([
    [{}, 'name: is required'],
    [{ name: 'ann', zip: 1 }, 'zip: is not allowed'],
    [
      { name: '' },
      'name: must not have fewer than 1 characters',
      'name: must match pattern "^[a-z]+$"',
    ],
    [{ name: 'Ann' }, 'name: must match pattern "^[a-z]+$"'],
    [{ name: 'ann', age: 1.5 }, 'age: must be integer'],
    [{ name: 'ann', mail: 'nobody' }, 'mail: must match format "email"'],
    [{ name: 'ann', role: 'root' }, 'role: must be one of "admin", "user"'],
    [{ name: 'ann', pets: ['rex', 5] }, 'pets.1: must be string or null'],
    ['ann', 'body: must be object'],
  ])('%j is refused: %s', (value, ...issues) => {
    expect(issuesOf(person, value)).toEqual(issues);
  });

  test('infinity is no number', () => {
    expect(issuesOf({ type: 'number' }, Number('1e999'))).toEqual(['body: must be number']);
  });

  test('inherited members do not count as present', () => {
    expect(issuesOf({ required: ['toString'] }, {})).toEqual(['toString: is required']);
  });

  test('draft-07 is spoken when $schema says so', () => {
    const $schema = 'http://json-schema.org/draft-07/schema#';
    const items = [{ type: 'string' }];
    expect(issuesOf({ $schema, items }, [1])).toEqual(['0: must be string']);
    expect(faultOf({ items })).toBe('is no valid JSON Schema: items must be object or boolean');
  });

  test('a schema may refer to itself, and a value that is nested too deeply is refused', () => {
    const tree = { type: 'array', items: { $ref: '#' } };
    expect(issuesOf(tree, [[], [[]]])).toEqual([]);
    let deep: unknown[] = [];
    for (let i = 0; i < 20_000; i++) deep = [deep];
    expect(issuesOf(tree, deep)).toEqual(['body: is nested too deeply']);
  });

  test('the same $id may come twice', () => {
    const schema = { $id: 'https://example.com/a', type: 'string' };
    expect(issuesOf(schema, 1)).toEqual(['body: must be string']);
    expect(issuesOf({ ...schema }, 1)).toEqual(['body: must be string']);
  });

  test('unique items are told apart as JSON values', () => {
    const unique = { uniqueItems: true };
    const different = [1, '1', null, 'null', [], {}, [1], { a: 1 }, { a: '1' }, false, 'false'];
    expect(issuesOf(unique, different)).toEqual([]);
    expect(
      issuesOf(unique, [
        { a: 1, b: [2] },
        { b: [2], a: 1 },
      ]),
    ).toEqual(['body: must not have duplicate items']);
    expect(issuesOf({ uniqueItems: false }, [1, 1])).toEqual([]);
  });

  test('unique objects take linear time', async () => {
    const validate = compileSchema({ uniqueItems: true });
    const textOf = (length: number) => {
      const items = Array.from({ length: Math.ceil(length / 20) }, (_, id) => ({
        id,
        name: `n${id}`,
      }));
      return JSON.stringify(items);
    };
    const growth = await growthOf(textOf, (text) => validate(JSON.parse(text)));
    expect(growth).toBeLessThan(linearGrowthMax);
  });

  test('a pattern that would backtrack for ever takes linear time', async () => {
    const validate = compileSchema({ type: 'string', pattern: '^(a+)+$' });
    expect(await cpuMsOf(() => validate(`${'a'.repeat(100_000)}!`))).toBeLessThan(patient(1_000));
  });

  test.each(['uri', 'url', 'email', 'date-time', 'hostname', 'uri-reference', 'json-pointer'])(
    'a hostile string for the format %s takes linear time',
    async (format) => {
      const validate = compileSchema({ type: 'string', format });
      const hostile = `http://a${':'.repeat(500_000)}@`;
      expect(await cpuMsOf(() => validate(hostile))).toBeLessThan(patient(1_000));
    },
  );
});

describe('checkSchema', () => {
  test.each([
    [{ type: 'text' }, /^is no valid JSON Schema: type must be one of "array", /],
    [{ required: 'name' }, /^is no valid JSON Schema: required must be array$/],
    [{ properties: { a: 5 } }, /^is no valid JSON Schema: properties.a must be object or boolean$/],
    [{ pattern: '(?=a)' }, /^has the pattern "\(\?=a\)", and lookaround cannot be matched/],
    [{ pattern: '(a)\\1' }, /backreferences cannot be matched in linear time$/],
    [{ pattern: '(' }, /^has the pattern "\(", which RE2 cannot read: missing closing \)/],
    [{ items: { patternProperties: { '(?!x)': {} } } }, /lookaround/],
    [{ $ref: '#/$defs/none' }, /^refers to "#\/\$defs\/none", which it does not define$/],
    [{ $ref: 'https://example.com/s' }, /schemas from elsewhere are never fetched$/],
    [{ $schema: 'http://json-schema.org/draft-04/schema#' }, /2020-12 and draft-07 are supported$/],
    [{ $async: true }, /^must not use \$async$/],
    [[], /^must be an object$/],
    [{ description: 'x'.repeat(schemaBytesMax) }, /^is larger than 64 KiB of JSON$/],
  ])('%j is refused', (schema, fault) => {
    expect(faultOf(schema)).toMatch(fault);
  });

  test('a schema of 33 levels is refused, one of 32 is not', () => {
    const nested = (levels: number): object => (levels === 1 ? {} : { not: nested(levels - 1) });
    expect(faultOf(nested(schemaDepthMax))).toBe('none');
    expect(faultOf(nested(schemaDepthMax + 1))).toBe('is nested more than 32 levels deep');
  });

  test('unknown keywords and formats are tolerated', () => {
    expect(faultOf({ type: 'string', format: 'iban', 'x-widget': 'area' })).toBe('none');
  });

  test('a property that is called pattern is no pattern', () => {
    expect(faultOf({ properties: { pattern: { type: 'string' } } })).toBe('none');
    expect(faultOf({ enum: [{ pattern: '(' }], default: { pattern: '(' } })).toBe('none');
  });
});

describe('what is wrong with a value', () => {
  const validate = compileSchema({
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 2 },
      count: { type: 'integer' },
      tag: { anyOf: [{ type: 'string', maxLength: 3, pattern: '^[a-z]*$' }, { type: 'null' }] },
      items: { type: 'array', items: { type: 'integer' } },
    },
    required: ['name', 'count'],
    additionalProperties: false,
  });

  test('is told of every field at once', () => {
    expect(validate({ name: 'x', tag: 'ABCD', items: [1, 'a'], other: 1, 'an.other': 2 })).toEqual([
      { field: 'count', issue: 'is required' },
      { field: 'other', issue: 'is not allowed' },
      { field: 'an.other', issue: 'is not allowed' },
      { field: 'name', issue: 'must not have fewer than 2 characters' },
      { field: 'tag', issue: 'must not have more than 3 characters' },
      { field: 'tag', issue: 'must match pattern "^[a-z]*$"' },
      { field: 'items.1', issue: 'must be integer' },
    ]);
  });

  test('of a field that may be null is one issue, which says so', () => {
    const orNull = (schema: object) => ({ anyOf: [schema, { type: 'null' }] });
    const refuse = compileSchema({
      properties: {
        limit: orNull({ type: 'integer', minimum: 1 }),
        usd: orNull({ type: 'number', minimum: 0.1 }),
        both: { anyOf: [{ type: 'string' }, { type: 'number' }, { type: 'null' }] },
        effort: orNull({ type: 'string', enum: ['low', 'high'] }),
        settings: orNull({ properties: { depth: orNull({ type: 'integer' }) }, type: 'object' }),
      },
    });

    expect(refuse({ limit: '5', usd: true, both: [], effort: 'deep', settings: 1 })).toEqual([
      { field: 'limit', issue: 'must be integer or null' },
      { field: 'usd', issue: 'must be number or null' },
      { field: 'both', issue: 'must be string or number or null' },
      { field: 'effort', issue: 'must be one of "low", "high", null' },
      { field: 'settings', issue: 'must be object or null' },
    ]);
    expect(refuse({ effort: 3 })).toEqual([
      { field: 'effort', issue: 'must be one of "low", "high", null' },
    ]);
    expect(refuse({ limit: 1.5, usd: 0, settings: { depth: '1' } })).toEqual([
      { field: 'limit', issue: 'must be integer or null' },
      { field: 'usd', issue: 'must be >= 0.1' },
      { field: 'settings.depth', issue: 'must be integer or null' },
    ]);
  });

  test('of a field that may only be null names null, and the refusal has an issue', () => {
    const onlyNull = { anyOf: [{ type: 'null' }] };
    const refuse = compileSchema({ properties: { a: onlyNull, b: { anyOf: [onlyNull] } } });

    expect(refuse({ a: null, b: null })).toBeNull();
    expect(refuse({ a: 1 })).toEqual([
      { field: 'a', issue: 'must be null' },
      { field: 'a', issue: 'must match a schema in anyOf' },
    ]);
    expect(refuse({ b: 1 })?.length).toBeGreaterThan(0);
  });

  test('is told of at most 50 fields, and names are cut', () => {
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`f${n}`, n]));
    expect(validate({ name: 'ab', count: 1, ...many })).toHaveLength(50);

    const [issue] = validate({ name: 'ab', count: 1, ['x'.repeat(100_000)]: 1 }) ?? [];
    expect(issue?.field).toHaveLength(201);
  });

  test('is told of all its fields however long its texts are', () => {
    const long = { name: 'x'.repeat(200_000), count: 'one', items: ['a'] };

    expect(validate(long)?.map(({ field }) => field)).toEqual(
      expect.arrayContaining(['count', 'items.0']),
    );
  });

  test('is told of its own first field where it has more than 2,000 items, whatever was refused before', () => {
    const large = { name: 'ab', count: 1, items: Array.from({ length: 20_000 }, () => 'a') };

    expect(validate({ 'of-another-caller': 1 })).toHaveLength(3);
    expect(validate(large)).toEqual([{ field: 'items.0', issue: 'must be integer' }]);
  });
});
