import { describe, expect, test } from 'vitest';
import { decided } from '../../../../../test/support/short-sandbox.ts';
import { trySkill } from '../../../../../test/support/try-skill.ts';
import validateJson from './validate-json.ts';

type Schema = boolean | Record<string, unknown>;

const runSkill = (schema: Schema, data: unknown, more = {}) =>
  trySkill(validateJson, { schema, data, ...more });

test.each<[Schema, unknown, boolean]>([
  [true, 1, true],
  [false, 1, false],
  [{}, null, true],
  [{ type: 'string', format: 'email' }, 'ada@example.com', true],
  [{ type: 'string', format: 'email' }, 'ada', false],
  [{ format: 'date-time' }, '2026-01-31T00:00:00Z', true],
  [{ prefixItems: [{ type: 'integer' }], items: false }, [1], true],
  [{ prefixItems: [{ type: 'integer' }], items: false }, [1, 2], false],
  [{ $defs: { n: { type: 'number' } }, $ref: '#/$defs/n' }, 'x', false],
  [
    { $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'integer' }] },
    ['x'],
    false,
  ],
  [{ $schema: 'https://json-schema.org/draft/2019-09/schema', minimum: 3 }, 2, false],
  [{ $schema: 'https://json-schema.org/draft/2020-12/schema', pattern: '^(?=a)' }, 'b', false],
  [{ unknown_keyword: 1, format: 'made-up' }, 'x', true],
])('the schema %j says of %j: %s', async (schema, data, valid) => {
  const result = await runSkill(schema, data);

  expect(result.valid).toBe(valid);
  expect(result.errors.length > 0).toBe(!valid);
});

test('errors name the place in the data and in the schema, and are all counted', async () => {
  const schema = { items: { properties: { 'a/b': { type: 'integer' } } } };
  const data = Array.from({ length: 30 }, () => ({ 'a/b': 'x' }));

  const result = await runSkill(schema, data, { max_errors: 2 });

  expect(result.error_count).toBe(30);
  expect(result.errors).toEqual([
    {
      path: '/0/a~1b',
      message: 'must be integer',
      keyword: 'type',
      schema_path: '#/items/properties/a~1b/type',
    },
    expect.objectContaining({ path: '/1/a~1b' }),
  ]);
});

describe('a schema that cannot be used is an error, not an answer', () => {
  test.each<[Schema, string]>([
    [{ type: 'strung' }, 'The schema cannot be used'],
    [{ minimum: 'x' }, 'The schema cannot be used'],
    [{ pattern: '(' }, 'The schema cannot be used'],
    [{ $ref: '#/$defs/missing' }, "can't resolve reference"],
    [{ $ref: 'https://example.com/schema.json' }, "can't resolve reference"],
    [{ $schema: 'http://json-schema.org/draft-04/schema#' }, '2020-12, 2019-09 and draft-07'],
    [{ $async: true, type: 'string' }, '$async'],
  ])('%j', async (schema, message) => {
    await expect(runSkill(schema, 'x')).rejects.toThrow(message);
  });
});

test('a broken schema is not tried again', async () => {
  await expect(runSkill({ type: 'strung' }, 1)).rejects.toMatchObject({
    name: 'SkillError',
    retryable: false,
  });
});

describe('a schema that takes too long is stopped', () => {
  test('by its pattern', { timeout: 60_000 }, async () => {
    const tooLong = () => runSkill({ pattern: '^(a+)+$' }, `${'a'.repeat(40)}!`);
    await expect(decided(tooLong)).rejects.toMatchObject({
      message: 'This takes longer than 5 s',
      retryable: false,
    });
  });

  test('by recursion over deep data', async () => {
    // Ten times as many levels as fill the stack of the sandbox.
    let data: unknown = 1;
    for (let i = 0; i < 50_000; i++) data = [data];

    const deep = () => runSkill({ items: { $ref: '#' } }, data);
    await expect(decided(deep)).rejects.toMatchObject({
      message: expect.stringContaining('nested too deeply'),
      retryable: false,
    });
  });
});

test('errors at long paths are listed as far as an output can hold them', async () => {
  const data = { ['x'.repeat(50_000)]: Array.from({ length: 500 }, () => 'x') };
  const schema = { additionalProperties: { items: { type: 'integer' } } };

  const result = await runSkill(schema, data, { max_errors: 500 });

  expect(result.error_count).toBe(500);
  expect(result.errors.length).toBeGreaterThan(50);
  expect(JSON.stringify(result).length).toBeLessThan(1_000_000);
});
